const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;

export const secondMs = unitMs.s;
export const minuteMs = unitMs.m;
export const hourMs = unitMs.h;

const compactForm =
  /^(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?$/i;
const iso8601 = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/i;
const clockForm = /^(?:(\d+)\.)?(\d{1,2}):([0-5]\d):([0-5]\d(?:\.\d+)?)$/;

/** Timers hold 31 bits: a longer one would fire at once. About 24.8 days. */
export const longestTimerMs = 2 ** 31 - 1;

/** Each form would be tried on all of a longer text. */
const longestNotation = 64;

const sum = (parts: readonly (string | undefined)[], units: readonly number[]): number | undefined => {
  if (parts.every((part) => part === undefined)) return undefined;
  const total = parts.reduce((ms, part, index) => ms + Number(part ?? 0) * (units[index] ?? 0), 0);
  const rounded = Math.round(total);
  // A part of a millisecond cannot be waited for, so it is not accepted either.
  return Math.abs(total - rounded) < 1e-6 && Number.isSafeInteger(rounded) ? rounded : undefined;
};

/** Milliseconds of `250ms`, `1h30m`, `2d`, `PT30S` or `hh:mm:ss`; undefined for anything else, bare numbers included. */
export const parseDuration = (text: string): number | undefined => {
  const trimmed = text.trim();
  if (trimmed.length > longestNotation) return undefined;
  const compact = compactForm.exec(trimmed);
  if (compact !== null) return sum(compact.slice(1), [unitMs.d, unitMs.h, unitMs.m, unitMs.s, unitMs.ms]);
  const iso = iso8601.exec(trimmed);
  if (iso !== null && !/T$/i.test(trimmed))
    return sum(iso.slice(1), [7 * unitMs.d, unitMs.d, unitMs.h, unitMs.m, unitMs.s]);
  const clock = clockForm.exec(trimmed);
  return clock === null ? undefined : sum(clock.slice(1), [unitMs.d, unitMs.h, unitMs.m, unitMs.s]);
};

/** The shortest notation that `parseDuration` reads back. */
export const formatDuration = (ms: number): string => {
  if (ms === 0) return '0s';
  let rest = ms;
  let text = '';
  for (const [unit, size] of Object.entries(unitMs)) {
    const count = Math.floor(rest / size);
    // Hours up to two days read better than days and hours: 24h, not 1d.
    if (count > 0 && !(unit === 'd' && ms <= 2 * unitMs.d && ms !== 2 * unitMs.d)) {
      text += `${count}${unit}`;
      rest -= count * size;
    }
  }
  return text;
};
