import type { Clock } from './clock.ts';
import {
  type InstanceStateName,
  instanceState,
  type KeptState,
  type LeftoverName,
  leftovers,
} from './instance-state.table.ts';
import type { Logger } from './logger.ts';
import { type CurrentValue, createEntries, type EntrySource, type StoreEntries } from './store-entries.ts';
import { createTable, type KeptTable, type StoreTable, type TableSource } from './store-table.ts';

export type { EntrySource, StoreEntries } from './store-entries.ts';
export type { StoreTable, TableSource } from './store-table.ts';

/** What each part closes of what a process that died has left open; safe to repeat where it is interrupted itself. */
export type LeftoverClosings<Name extends LeftoverName = LeftoverName> = Readonly<Record<Name, () => Promise<unknown>>>;

type NamesOf<Kind extends string> = {
  [Name in InstanceStateName]: (typeof instanceState)[Name]['kind'] extends Kind ? Name : never;
}[InstanceStateName];

/** What a process knows of the store without asking it; every such copy is made here, under its name in the table. */
export interface InstanceState {
  table<R>(name: NamesOf<'table'>, source: TableSource<R>): StoreTable<R>;
  entries<T>(name: NamesOf<'entries'>, source: EntrySource<T>): StoreEntries<T>;
  /** Reads all tables; before the first request. Those of a shared store are read again and again from then on. */
  load(): Promise<void>;
  /**
   * Null: no table refuses. Else they are being read, and it rejects where they cannot be. Asked before what takes
   * answers of tables without waiting. About tables by which something is decided; so is `stale`.
   */
  current(): Promise<void> | null;
  /** Tables that refuse, since they could not be read in time; none where the store has one owner. */
  stale(): readonly string[];
  /**
   * Before the first request, too: the owner of a store closes all that is open, since nobody else can be at work. A
   * process that shares its store closes what anybody may.
   */
  recover(closings: LeftoverClosings): Promise<void>;
  /** Reads no more; before the store closes. */
  close(): void;
}

/** How processes tell each other which rows have changed; see `Announcements`. */
export interface StateAnnouncements {
  announce(topic: 'state', key: string): void;
  listen(topic: 'state', listener: { heard(key: string): void; missed(): void }): () => void;
}

export interface InstanceStateOptions {
  /**
   * True: nothing but this process writes the store, and what it has read once stays true. False: a copy that is older
   * than the table allows is read again, or refused where it cannot be.
   */
  readonly ownsStore: boolean;
  readonly clock: Pick<Clock, 'now' | 'every'>;
  readonly announcements: StateAnnouncements;
  readonly log: Pick<Logger, 'warn' | 'error'>;
}

/** Something under a name of the table, as announcements reach it. */
interface Part {
  heard(key: string): void;
  missed(): void;
}

interface NamedTable {
  readonly name: InstanceStateName;
  readonly kept: Pick<KeptTable<unknown>, 'load' | 'look'> & {
    readonly table: Pick<StoreTable<unknown>, 'current' | 'isStale'>;
  };
}

// Two reads in a row can fail or be late before a table refuses.
const readsPerAge = 3;

export const createInstanceState = ({ ownsStore, clock, announcements, log }: InstanceStateOptions): InstanceState => {
  const { now } = clock;
  const parts = new Map<string, Part>();
  const tables: NamedTable[] = [];
  /** Those by which something is decided. */
  const deciding: NamedTable[] = [];
  const timers: { stop(): void }[] = [];

  const maxAgeOf = (name: InstanceStateName): number | null => (ownsStore ? null : instanceState[name].sharedAgeMs);
  /** Of a copy that may still be used. A clock that was set back makes it old, not young. */
  const currentOf =
    (maxAgeMs: number | null): CurrentValue =>
    (copy) => {
      if (copy === undefined || copy === null) return undefined;
      if (maxAgeMs === null) return copy.value;
      const age = now() - copy.readAt;
      return age >= 0 && age < maxAgeMs ? copy.value : undefined;
    };
  const keep = (name: InstanceStateName, part: Part): void => {
    // Two copies of one thing would learn of a change apart.
    if (parts.has(name)) throw new Error(`The state ${name} is kept twice.`);
    parts.set(name, part);
  };
  // No name of a state has a slash.
  const announceOf =
    (name: InstanceStateName) =>
    (key: string): void =>
      announcements.announce('state', `${name}/${key}`);
  const listening = announcements.listen('state', {
    heard(announced) {
      const end = announced.indexOf('/');
      parts.get(announced.slice(0, end))?.heard(announced.slice(end + 1));
    },
    missed() {
      for (const part of parts.values()) part.missed();
    },
  });

  return {
    table(name, source) {
      const maxAgeMs = maxAgeOf(name);
      const kept = createTable(source, {
        ...{ name, maxAgeMs, now, log },
        current: currentOf(maxAgeMs),
        announce: announceOf(name),
      });
      keep(name, { heard: kept.changed, missed: kept.changed });
      tables.push({ name, kept });
      const { decides = true }: KeptState = instanceState[name];
      if (decides) deciding.push({ name, kept });
      return kept.table;
    },
    entries(name, source) {
      const { entries, forget, forgetAll } = createEntries(source, {
        current: currentOf(maxAgeOf(name)),
        now,
        announce: announceOf(name),
      });
      keep(name, { heard: forget, missed: forgetAll });
      return entries;
    },
    async load() {
      for (const { kept } of tables) await kept.load();
      for (const { name, kept } of timers.length === 0 ? tables : []) {
        const maxAgeMs = maxAgeOf(name);
        if (maxAgeMs !== null) timers.push(clock.every(maxAgeMs / readsPerAge, kept.look));
      }
    },
    current() {
      if (ownsStore) return null;
      const reading = deciding.flatMap(({ kept }) => kept.table.current() ?? []);
      return reading.length === 0 ? null : Promise.all(reading).then(() => undefined);
    },
    stale: () => deciding.filter(({ kept }) => kept.table.isStale()).map(({ name }) => name),
    async recover(closings) {
      for (const name of Object.keys(leftovers) as LeftoverName[])
        if (ownsStore || !leftovers[name].ownerOnly) await closings[name]();
    },
    close() {
      listening();
      for (const timer of timers) timer.stop();
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
