import { setImmediate as nextTurn } from 'node:timers/promises';

// Others wait for what is done in one turn of the event loop, and do so in each step of a request.
const aimMs = 4;

/**
 * For long work in many small parts: gives others a turn between two parts once it has had its few milliseconds. Null: it has
 * not, and nothing is to be awaited, which for very many parts would cost more than they do.
 */
export const createTurns = (longestMs = aimMs): (() => Promise<void> | null) => {
  let since = performance.now();
  const pass = async (): Promise<void> => {
    await nextTurn();
    since = performance.now();
  };
  return () => (performance.now() - since < longestMs ? null : pass());
};
