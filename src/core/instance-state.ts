import { AcpError } from '../contract/errors.ts';
import { type InstanceStateName, instanceState, type LeftoverName, leftovers } from './instance-state.table.ts';

/** What each part closes of what a process that died has left open; safe to repeat where it is interrupted itself. */
export type LeftoverClosings<Name extends LeftoverName = LeftoverName> = Readonly<Record<Name, () => Promise<unknown>>>;

type NamesOf<Kind extends string> = {
  [Name in InstanceStateName]: (typeof instanceState)[Name]['kind'] extends Kind ? Name : never;
}[InstanceStateName];

/** Rows that are asked for at every step, all of them in memory from before the first request on. */
export interface StoreTable<R> {
  /** Throws `store-unavailable` where they were not read: nobody decides on rows that are not there. */
  readonly rows: ReadonlyMap<string, R>;
  /** After the commit that wrote the row. */
  put(row: R): void;
  /** After the commit that removed it. */
  drop(key: string): void;
}

export interface TableSource<R> {
  read(): Promise<readonly R[]>;
  keyOf(row: R): string;
}

/** Values that are read from the store when they are asked for first, and from memory from then on. */
export interface StoreEntries<T> {
  /** From memory alone; undefined: the store has to be asked. */
  known(key: string): T | undefined;
  /**
   * A promise only where the store has to be asked; null: it has nothing under this key. Rejects where the store cannot
   * be read: what memory had before does not take the place of an answer.
   */
  read(key: string): T | null | Promise<T | null>;
  /** As `read`, with one question for all. */
  readAll(keys: readonly string[]): readonly (T | null)[] | Promise<readonly (T | null)[]>;
  /** After each commit that changed what is stored under the key. */
  changed(key: string): void;
}

export interface EntrySource<T> {
  /** In the order of the keys; null where nothing is stored. */
  load(keys: readonly string[]): Promise<readonly (T | null)[]>;
  /** Keys that are remembered to have nothing; default 0, so that made-up keys cannot fill the memory. */
  readonly mostAbsent?: number;
}

/** What a process knows of the store without asking it; every such copy is made here, under its name in the table. */
export interface InstanceState {
  table<R>(name: NamesOf<'table'>, source: TableSource<R>): StoreTable<R>;
  entries<T>(name: NamesOf<'entries'>, source: EntrySource<T>): StoreEntries<T>;
  /** Reads all tables; before the first request. */
  load(): Promise<void>;
  /**
   * Before the first request, too: the owner of a store closes all that is open, since nobody else can be at work. A
   * process that shares its store closes what anybody may.
   */
  recover(closings: LeftoverClosings): Promise<void>;
}

export interface InstanceStateOptions {
  /**
   * True: nothing but this process writes the store, and what it has read once stays true. False: a copy that is older
   * than the table allows is read again, or refused where it cannot be.
   */
  readonly ownsStore: boolean;
  readonly now: () => number;
}

interface Copy<T> {
  readonly value: T;
  readonly readAt: number;
}

// What is beyond is read again; a map that never forgets would grow with every tenant there ever was.
const mostEntries = 10_000;

const remember = <T>(map: Map<string, T>, most: number, key: string, value: T): void => {
  map.delete(key);
  const oldest = map.size < most ? undefined : map.keys().next().value;
  if (oldest !== undefined) map.delete(oldest);
  if (most > 0) map.set(key, value);
};

type CurrentValue = <T>(copy: Copy<T> | null | undefined) => T | undefined;

const createEntries = <T>(
  { load, mostAbsent = 0 }: EntrySource<T>,
  current: CurrentValue,
  now: () => number,
): StoreEntries<T> => {
  const present = new Map<string, Copy<T>>();
  const absent = new Map<string, Copy<null>>();
  const reading = new Map<string, Promise<T | null>>();
  // A read that began before a change must not be remembered after it.
  let changes = 0;

  const known = (key: string): T | undefined => current(present.get(key));
  const knownOrAbsent = (key: string): T | null | undefined => known(key) ?? current(absent.get(key));
  const loadAll = async (keys: readonly string[]): Promise<readonly (T | null)[]> => {
    const [before, readAt] = [changes, now()];
    const values = await load(keys);
    if (before !== changes) return values;
    for (const [index, key] of keys.entries()) {
      const value = values[index] ?? null;
      if (value === null) remember(absent, mostAbsent, key, { value, readAt });
      else remember(present, mostEntries, key, { value, readAt });
    }
    return values;
  };
  const loadOne = async (key: string): Promise<T | null> => (await loadAll([key]))[0] ?? null;

  return {
    known,
    read(key) {
      const value = knownOrAbsent(key);
      if (value !== undefined) return value;
      const begun = reading.get(key);
      if (begun !== undefined) return begun;
      const loading = loadOne(key).finally(() => {
        if (reading.get(key) === loading) reading.delete(key);
      });
      reading.set(key, loading);
      return loading;
    },
    readAll(keys) {
      const values: (T | null)[] = [];
      for (const key of keys) {
        const value = knownOrAbsent(key);
        if (value === undefined) return loadAll(keys);
        values.push(value);
      }
      return values;
    },
    changed(key) {
      changes += 1;
      present.delete(key);
      absent.delete(key);
      reading.delete(key);
    },
  };
};

export const createInstanceState = ({ ownsStore, now }: InstanceStateOptions): InstanceState => {
  const names = new Set<InstanceStateName>();
  const loads: (() => Promise<void>)[] = [];

  /** Of a copy that may still be used. A clock that was set back makes it old, not young. */
  const currentOf = (name: InstanceStateName): CurrentValue => {
    // Two copies of one thing would learn of a change apart.
    if (names.has(name)) throw new Error(`The state ${name} is kept twice.`);
    names.add(name);
    const maxAgeMs = ownsStore ? null : instanceState[name].sharedAgeMs;
    return (copy) => {
      if (copy === undefined || copy === null) return undefined;
      if (maxAgeMs === null) return copy.value;
      const age = now() - copy.readAt;
      return age >= 0 && age < maxAgeMs ? copy.value : undefined;
    };
  };

  return {
    table<R>(name: NamesOf<'table'>, { read, keyOf }: TableSource<R>): StoreTable<R> {
      const current = currentOf(name);
      let copy: Copy<Map<string, R>> | null = null;
      const rows = (): Map<string, R> => {
        const map = current(copy);
        if (map !== undefined) return map;
        throw new AcpError('store-unavailable', 'What the store says of this was not read.', {
          cause: new Error(`The state ${name} was not read, or too long ago`),
        });
      };
      loads.push(async () => {
        const readAt = now();
        copy = { value: new Map((await read()).map((row) => [keyOf(row), row])), readAt };
      });
      return {
        get rows() {
          return rows();
        },
        put: (row) => {
          rows().set(keyOf(row), row);
        },
        drop: (key) => {
          rows().delete(key);
        },
      };
    },
    entries: (name, source) => createEntries(source, currentOf(name), now),
    async load() {
      for (const read of loads) await read();
    },
    async recover(closings) {
      for (const name of Object.keys(leftovers) as LeftoverName[])
        if (ownsStore || !leftovers[name].ownerOnly) await closings[name]();
    },
  };
};

/** Under which a name of a tenant is kept; no tenant slug has a slash. */
export const tenantKey = (tenantId: string, name: string): string => `${tenantId}/${name}`;

/** Loads names of a tenant, whose keys are never mixed with those of another in one question. */
export const byTenant =
  <T>(load: (tenantId: string, names: readonly string[]) => Promise<readonly (T | null)[]>): EntrySource<T>['load'] =>
  async (keys) => {
    const [first] = keys;
    if (first === undefined) return [];
    const end = first.indexOf('/');
    return load(
      first.slice(0, end),
      keys.map((key) => key.slice(end + 1)),
    );
  };

/** Loads what is asked for singly. */
export const byKey =
  <T>(load: (key: string) => Promise<T | null>): EntrySource<T>['load'] =>
  (keys) =>
    Promise.all(keys.map(load));
