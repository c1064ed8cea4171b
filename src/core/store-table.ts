import { AcpError } from '../contract/errors.ts';
import type { Copy, CurrentValue } from './store-entries.ts';

/** Rows that are asked for at every step, all of them in memory from before the first request on. */
export interface StoreTable<R> {
  /** Throws `store-unavailable` where they were not read in time: nobody decides on rows that are not there. */
  readonly rows: ReadonlyMap<string, R>;
  /** After the commit that wrote the row. */
  put(row: R): void;
  /** After the commit that removed it. */
  drop(key: string): void;
  /** Before the commit that writes it: it counts at once, and no read takes it away until `put` or `drop` settles it. */
  ahead(row: R): void;
  /** Null: `rows` can be asked now and for a while. Else it resolves once they can be, and rejects where they still cannot. */
  current(): Promise<void> | null;
  /** Resolves with all that anybody has committed by now in `rows`; at once where the store has one owner. */
  refresh(): Promise<void>;
  /** True: the rows are too old, or were never read, and `rows` throws. */
  isStale(): boolean;
  /** Called whenever the rows were read again. */
  onRead(listener: () => void): void;
}

export interface TableSource<R> {
  read(): Promise<readonly R[]>;
  keyOf(row: R): string;
}

interface TableSide {
  readonly name: string;
  /** Null: nobody else writes the store, and the rows are read once. */
  readonly maxAgeMs: number | null;
  readonly current: CurrentValue;
  readonly now: () => number;
  /** Tells the other processes of the store. */
  announce(key: string): void;
  readonly log: {
    warn(fields: Record<string, unknown>, message: string): void;
    error(fields: Record<string, unknown>, message: string): void;
  };
}

/** The same, for whoever keeps it up to date. */
export interface KeptTable<R> {
  readonly table: StoreTable<R>;
  /** Reads the rows; rejects where they cannot be read. */
  load(): Promise<void>;
  /** Reads them again, unless a read is under way that may still answer in time. Failures are logged once. */
  look(): void;
  /** Reads them again because they have changed. */
  changed(): void;
}

// Between this question and the last step that asks for rows a busy process may take a while.
const headroom = 1 / 3;
// Reads that hang, say for a network that is cut, hold a connection each.
const mostReads = 3;
/** For so long a caller asks again where answers come, but too late: a busy moment is no reason to refuse anybody. */
const patienceMs = 3000;

export const createTable = <R>({ read, keyOf }: TableSource<R>, side: TableSide): KeptTable<R> => {
  const { name, maxAgeMs, current, now, announce, log } = side;
  const listeners: (() => void)[] = [];
  /** Rows that are being written, and count already. */
  const ahead = new Map<string, R>();
  /** For each read under way, what was committed here since it began: it may have seen it or not. */
  const underWay = new Set<Map<string, R | null>>();
  let copy: Copy<Map<string, R>> | null = null;
  let copyOrder = 0;
  let reads = 0;
  let running: { readonly done: Promise<void>; readonly startedAt: number } | null = null;
  let next: Promise<void> | null = null;
  let isTold = false;

  const unread = (cause: unknown = new Error(`The state ${name} was not read, or too long ago`)): AcpError =>
    new AcpError('store-unavailable', 'What the store says of this was not read.', { cause });
  const rows = (): Map<string, R> => {
    const map = current(copy);
    if (map === undefined) throw unread();
    return map;
  };
  const apply = (key: string, row: R | null): void => {
    if (copy === null) throw unread();
    for (const meanwhile of underWay) meanwhile.set(key, row);
    if (row === null) copy.value.delete(key);
    else copy.value.set(key, row);
  };

  const isStale = (): boolean => current(copy) === undefined;
  /** Reads have been late: what may be asked now could be refused a step later. */
  const isNearlyStale = (): boolean =>
    maxAgeMs !== null && copy !== null && now() - copy.readAt >= maxAgeMs * (1 - headroom);
  const readRows = async (): Promise<void> => {
    const [readAt, order, meanwhile] = [now(), ++reads, new Map<string, R | null>()];
    underWay.add(meanwhile);
    try {
      const value = new Map((await read()).map((row) => [keyOf(row), row]));
      if (order < copyOrder) return;
      for (const [key, row] of meanwhile)
        if (row === null) value.delete(key);
        else value.set(key, row);
      for (const [key, row] of ahead) value.set(key, row);
      copy = { value, readAt };
      copyOrder = order;
    } finally {
      underWay.delete(meanwhile);
    }
    // An answer that took longer than the age is of no use, and no sign that the next one will not.
    if (isStale()) return;
    if (isTold) log.warn({ state: name }, 'A copy of what the store says is read again');
    isTold = false;
    for (const listener of listeners) listener();
  };
  const start = (): Promise<void> => {
    const reading = { done: readRows(), startedAt: now() };
    running = reading;
    const ended = (): void => {
      if (running === reading) running = null;
    };
    reading.done.then(ended, ended);
    return reading.done;
  };
  /** A read that began after the call. */
  const again = (): Promise<void> => {
    if (running === null) return start();
    const restart = (): Promise<void> => {
      next = null;
      return start();
    };
    next ??= running.done.then(restart, restart);
    return next;
  };
  const upToDate = async (): Promise<void> => {
    const underWayBefore = running;
    const askedAt = now();
    const isLate = () => isStale() || isNearlyStale();
    try {
      await (underWayBefore?.done ?? start());
      // It may have begun too long ago for its answer to be of use; one that begins now is asked for in any case.
      if (underWayBefore !== null && isLate()) await again();
      while (isLate() && now() - askedAt < patienceMs) await again();
      // All of the time may have passed while this process stood still: that says nothing of the store.
      if (isStale()) await again();
    } catch (error) {
      // Who keeps it up to date tells of the failure, and until it is too old the copy counts.
      if (isStale()) throw error instanceof AcpError ? error : unread(error);
    }
    rows();
  };
  const tell = (error?: unknown): void => {
    if (isTold) return;
    isTold = true;
    log.error(
      { state: name, ...(error === undefined ? {} : { error }) },
      'A copy of what the store says could not be read again in time; what needs it is refused once it is too old',
    );
  };

  return {
    table: {
      get rows() {
        return rows();
      },
      put(row) {
        const key = keyOf(row);
        ahead.delete(key);
        apply(key, row);
        announce(key);
      },
      drop(key) {
        ahead.delete(key);
        apply(key, null);
        announce(key);
      },
      ahead(row) {
        rows().set(keyOf(row), row);
        ahead.set(keyOf(row), row);
      },
      current: () => (isStale() || isNearlyStale() ? upToDate() : null),
      refresh: () => (maxAgeMs === null ? Promise.resolve() : again()),
      isStale,
      onRead: (listener) => void listeners.push(listener),
    },
    load: start,
    look() {
      const isOverdue = running !== null && now() - running.startedAt >= (maxAgeMs ?? 0);
      if (isStale()) tell();
      if (running === null || (isOverdue && underWay.size < mostReads)) start().catch(tell);
    },
    changed: () => void again().catch(tell),
  };
};
