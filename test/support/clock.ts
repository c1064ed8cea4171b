import type { Clock, Timer } from '../../src/core/clock.ts';

/** A clock that tests move. It goes on by itself between moves, unless it was told to stand. */
export interface TestClock extends Clock {
  /** Moves on, firing what is due on the way in its order and at its time, each awaited before the next. */
  advance(ms: number): Promise<void>;
  /** Moves at once, as for a machine that slept: what is due meanwhile fires once, in its order, with the new time. */
  jump(ms: number): Promise<void>;
  /** Tells an earlier time from here on; what waits is not late for it. */
  setBack(ms: number): void;
  /** Tells a later time from here on, as for a process that stood still; what waits goes on with its wait. */
  setAhead(ms: number): void;
  /** Goes on by moves alone from here on. */
  stand(): void;
}

interface Waiting {
  dueAt: number;
  readonly everyMs: number | null;
  readonly work: () => unknown;
  armed: NodeJS.Timeout | null;
  holdsProcess: boolean;
}

// The longest that a timer of Node can wait.
const longestMs = 2 ** 31 - 1;

export const testClock = ({
  at,
  stands = false,
}: {
  readonly at?: number;
  readonly stands?: boolean;
} = {}): TestClock => {
  const waiting = new Set<Waiting>();
  let offset = at === undefined ? 0 : at - Date.now();
  /** By how much the time was set, and did not pass. */
  let set = 0;
  let standsAt: number | null = stands ? (at ?? Date.now()) : null;
  const now = (): number => standsAt ?? Date.now() + offset;
  const moveTo = (due: number): void => {
    // Some waits are no whole milliseconds long; the time is.
    const time = Math.ceil(due);
    if (standsAt === null) offset = Math.max(time - Date.now(), offset);
    else standsAt = Math.max(time, standsAt);
  };

  const shift = (ms: number): void => {
    offset += ms;
    set += ms;
    if (standsAt !== null) standsAt += ms;
    for (const entry of waiting) entry.dueAt += ms;
  };

  const disarm = (entry: Waiting): void => {
    if (entry.armed !== null) clearTimeout(entry.armed);
    entry.armed = null;
  };
  const arm = (entry: Waiting): void => {
    disarm(entry);
    if (standsAt !== null) return;
    entry.armed = setTimeout(() => fire(entry), Math.min(Math.max(entry.dueAt - now(), 0), longestMs));
    if (!entry.holdsProcess) entry.armed.unref();
  };
  const fire = (entry: Waiting): unknown => {
    if (entry.everyMs === null) {
      disarm(entry);
      waiting.delete(entry);
    } else {
      entry.dueAt = Math.max(entry.dueAt + entry.everyMs, now() + (standsAt === null ? 1 : 0));
      arm(entry);
    }
    return entry.work();
  };
  const add = (delayMs: number, everyMs: number | null, work: () => unknown): Timer => {
    const entry: Waiting = { dueAt: now() + delayMs, everyMs, work, armed: null, holdsProcess: everyMs === null };
    waiting.add(entry);
    arm(entry);
    const timer: Timer = {
      stop() {
        disarm(entry);
        waiting.delete(entry);
      },
      unref() {
        entry.holdsProcess = false;
        entry.armed?.unref();
        return timer;
      },
    };
    return timer;
  };
  const dueBy = (time: number): Waiting[] =>
    [...waiting].filter(({ dueAt }) => dueAt <= time).sort((a, b) => a.dueAt - b.dueAt);

  return {
    now,
    elapsed: () => now() - set,
    after: (delayMs, work) => add(delayMs, null, work),
    every: (intervalMs, work) => add(intervalMs, intervalMs, work),
    async advance(ms) {
      const end = now() + ms;
      for (let [next] = dueBy(end); next !== undefined; [next] = dueBy(end)) {
        moveTo(next.dueAt);
        await fire(next);
      }
      moveTo(end);
      for (const entry of waiting) arm(entry);
    },
    async jump(ms) {
      const end = now() + ms;
      moveTo(end);
      const due = dueBy(end);
      for (const entry of due) {
        if (!waiting.has(entry)) continue;
        if (entry.everyMs !== null) entry.dueAt = end;
        await fire(entry);
      }
      for (const entry of waiting) arm(entry);
    },
    setBack: (ms) => shift(-ms),
    setAhead: shift,
    stand() {
      standsAt = now();
      for (const entry of waiting) disarm(entry);
    },
  };
};
