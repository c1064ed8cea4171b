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

/** What was read, and when the question was put: it is true as of that time at the earliest. */
export interface Copy<T> {
  readonly value: T;
  readonly readAt: number;
}

/** What of a copy may still be used; undefined: nothing. */
export type CurrentValue = <T>(copy: Copy<T> | null | undefined) => T | undefined;

// What is beyond is read again; a map that never forgets would grow with every tenant there ever was.
const mostEntries = 10_000;

const remember = <T>(map: Map<string, T>, most: number, key: string, value: T): void => {
  map.delete(key);
  const oldest = map.size < most ? undefined : map.keys().next().value;
  if (oldest !== undefined) map.delete(oldest);
  if (most > 0) map.set(key, value);
};

interface EntriesSide {
  readonly current: CurrentValue;
  readonly now: () => number;
  /** Tells the other processes of the store. */
  announce(key: string): void;
}

/** `forget` and `forgetAll`: somebody else has changed what is stored under the key, or under any. */
export const createEntries = <T>(
  { load, mostAbsent = 0 }: EntrySource<T>,
  { current, now, announce }: EntriesSide,
): { readonly entries: StoreEntries<T>; forget(key: string): void; forgetAll(): void } => {
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
  const forget = (key: string): void => {
    changes += 1;
    present.delete(key);
    absent.delete(key);
    reading.delete(key);
  };

  return {
    entries: {
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
        forget(key);
        announce(key);
      },
    },
    forget,
    forgetAll() {
      changes += 1;
      present.clear();
      absent.clear();
      reading.clear();
    },
  };
};
