/** The first entries of a list that may be long, and how many were left out. */
export interface CappedList<T> {
  readonly items: readonly T[];
  readonly omitted: number;
  add(item: T): void;
}

export const cappedList = <T>(limit: number): CappedList<T> => {
  const items: T[] = [];
  let omitted = 0;
  return {
    items,
    get omitted() {
      return omitted;
    },
    add(item) {
      if (items.length < limit) items.push(item);
      else omitted += 1;
    },
  };
};

/** The entries with the highest weight, highest first, in memory for twice as many. */
export const topList = <T>(limit: number, weight: (item: T) => number): CappedList<T> => {
  let items: T[] = [];
  let omitted = 0;
  const trim = (): void => {
    items.sort((a, b) => weight(b) - weight(a));
    omitted += Math.max(items.length - limit, 0);
    items = items.slice(0, limit);
  };
  return {
    get items() {
      trim();
      return items;
    },
    get omitted() {
      trim();
      return omitted;
    },
    add(item) {
      items.push(item);
      if (items.length >= limit * 2) trim();
    },
  };
};

// More agents, models and tools than anybody has; names of tools come from models and may be anything.
const mostGroups = 500;

/** One sum for each key; those beyond the limit share the last one. */
export const groups = <T>(make: (key: string) => T) => {
  const sums = new Map<string, T>();
  return {
    of(key: string): T {
      const name = sums.has(key) || sums.size < mostGroups ? key : '(other)';
      const sum = sums.get(name) ?? make(name);
      sums.set(name, sum);
      return sum;
    },
    get all(): T[] {
      return [...sums.values()];
    },
  };
};
