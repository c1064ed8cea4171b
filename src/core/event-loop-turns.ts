import { setImmediate as nextTurn } from 'node:timers/promises';

// Others wait for what is done in one turn of the event loop, and do so in each step of a request.
const aimMs = 4;

/** For long work in many small parts: gives others a turn between two parts once it has had its few milliseconds. */
export const createTurns = (longestMs = aimMs): (() => Promise<void>) => {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < longestMs) return;
    await nextTurn();
    since = performance.now();
  };
};
