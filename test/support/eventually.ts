import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

type Seen<T> = Exclude<Awaited<T>, false | null | undefined>;

const turns = 50;

/** What may take a process of its own: on a busy machine it is slow to start, and being slow is no failure. */
export const processMs = 60_000;

const late = (what: string, withinMs: number): Error => new Error(`In ${withinMs} ms this did not come about: ${what}`);

/**
 * Looks until there is something to see, and gives that: neither false, null nor undefined. `what` says in the failure
 * what was waited for. For what tells nobody that it has happened; whatever can be awaited is awaited.
 */
export const eventually = async <T>(what: string, look: () => T, withinMs = 20_000): Promise<Seen<T>> => {
  const until = performance.now() + withinMs;
  for (let turn = 0; ; turn += 1) {
    const seen = await look();
    if (seen !== false && seen !== null && seen !== undefined) return seen as Seen<T>;
    if (performance.now() > until) throw late(what, withinMs);
    // What is a few turns away is seen at once; what takes longer is not slowed down by who waits for it.
    await (turn < turns ? nextTurn() : pause(5));
  }
};

/** What is awaited, with a bound: `what` says in the failure what it was. */
export const inTime = async <T>(what: string, coming: Promise<T>, withinMs = processMs): Promise<T> => {
  const { promise: bound, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late(what, withinMs)), withinMs);
  try {
    return await Promise.race([coming, bound]);
  } finally {
    clearTimeout(timer);
  }
};
