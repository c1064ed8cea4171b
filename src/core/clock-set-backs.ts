import type { Clock, Timer } from './clock.ts';

const lookEveryMs = 1000;
// A clock that is kept right is moved by less; a person who sets one moves it by more.
const leastMs = 1000;

/**
 * Calls `setBack` with how many milliseconds the time of the machine was set back by, soon after. That it was set forward is
 * not told: a machine that slept looks the same.
 */
export const watchSetBacks = (clock: Clock, setBack: (byMs: number) => Promise<void>): Timer => {
  let ahead = clock.now() - clock.elapsed();
  return clock.every(lookEveryMs, async () => {
    const before = ahead;
    ahead = clock.now() - clock.elapsed();
    if (before - ahead >= leastMs) await setBack(Math.round(before - ahead));
  });
};
