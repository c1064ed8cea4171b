const firstMs = 10_000;
const longestMs = 300_000;
// Attempts that failed together must not come back together.
const spread = 0.2;

/** Milliseconds until the attempt after this one (from 1): doubling from 10 s to 5 min, give or take a fifth. */
export const retryDelayMs = (attempt: number, random: () => number = Math.random): number =>
  Math.round(Math.min(firstMs * 2 ** (attempt - 1), longestMs) * (1 - spread + 2 * spread * random()));
