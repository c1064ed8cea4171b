import type { WireHeaders } from './transport/wire-exchange.ts';

// A far date is a mistake of the other side, not a wait anybody meant.
const longestMs = 24 * 60 * 60 * 1000;

/** Whole milliseconds of a wait that somebody asks for; null: it is no time. */
export const boundedWait = (ms: number): number | null =>
  Number.isFinite(ms) ? Math.min(Math.max(Math.ceil(ms), 0), longestMs) : null;

/** `Retry-After` in seconds or as an HTTP date (RFC 9110), and the vendors' `retry-after-ms`; milliseconds or null. */
export const retryAfterMs = (headers: WireHeaders | null, now: number): number | null => {
  const exact = headers?.get('retry-after-ms') ?? headers?.get('x-ms-retry-after-ms');
  if (exact !== undefined && /^\d+(\.\d+)?$/.test(exact)) return boundedWait(Number(exact));
  const value = headers?.get('retry-after');
  if (value === undefined) return null;
  return /^\d+(\.\d+)?$/.test(value) ? boundedWait(Number(value) * 1000) : boundedWait(Date.parse(value) - now);
};
