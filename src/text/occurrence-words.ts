const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`;

/** `in 9 hours 3 minutes`, `in 2 days`, `12 minutes ago`: how far a time is from now, in milliseconds, in at most two units. */
export const distanceWords = (milliseconds: number): string => {
  let left = Math.abs(milliseconds);
  const parts: string[] = [];
  for (const [unit, unitMs] of units) {
    const count = Math.floor(left / unitMs);
    left -= count * unitMs;
    if (count > 0) parts.push(counted(count, unit));
    // Two units next to each other: minutes say nothing beside days.
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  const words = parts.length === 0 ? 'less than a minute' : parts.join(' ');
  return milliseconds < 0 ? `${words} ago` : `in ${words}`;
};

/** `Tuesday 24 November 2026, 07:00 Europe/Berlin (UTC+01:00)`: an instant, epoch milliseconds, on the wall clock of a zone. */
export const occurrenceWords = (at: number, timeZone: string): string => {
  const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone);
  const weekday = zoned.toLocaleString('en-GB', { weekday: 'long' });
  const day = zoned.toLocaleString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' });
  const time = zoned.toPlainTime().toString({ smallestUnit: 'minute' });
  const offset = timeZone === 'UTC' ? '' : ` (UTC${zoned.offset})`;
  return `${weekday} ${day}, ${time} ${timeZone}${offset}`;
};
