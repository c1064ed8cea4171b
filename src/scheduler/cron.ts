import { Cron } from 'croner';

/** Five fields of a cron expression, read; times in it are of a wall clock without a zone. */
export interface CronExpression {
  /** Next time of the wall clock that matches, after this one; null: none within a lifetime. */
  after(wall: Temporal.PlainDateTime): Temporal.PlainDateTime | null;
}

/** What is wrong with an expression, in words for whoever wrote it. */
export class CronError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CronError';
  }
}

interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  /** In place of numbers, from `least` on. */
  readonly words: readonly string[];
}

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const days = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const fields: readonly Field[] = [
  { name: 'minute', least: 0, most: 59, words: [] },
  { name: 'hour', least: 0, most: 23, words: [] },
  { name: 'day of month', least: 1, most: 31, words: [] },
  { name: 'month', least: 1, most: 12, words: months },
  { name: 'day of week', least: 0, most: 7, words: days },
];

const numberOf = (text: string, { name, least, most, words }: Field): number => {
  const word = words.indexOf(text.toUpperCase());
  const value = word === -1 ? (/^\d{1,2}$/.test(text) ? Number(text) : Number.NaN) : least + word;
  if (value >= least && value <= most) return value;
  const orName = words.length === 0 ? '' : ` or one of ${words.join(', ')}`;
  throw new CronError(`"${text}" is no ${name}: a number from ${least} to ${most}${orName} is expected.`);
};

const checkStep = (text: string, { name, least, most }: Field): void => {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1 || Number(text) > most - least + 1)
    throw new CronError(`"${text}" is no step of the ${name}: a number from 1 to ${most - least + 1} is expected.`);
};

// The library reads more than this: seconds, years, macros, L, W, #, ?. None of it is offered, and its words count from 0.
const checkPart = (part: string, field: Field): void => {
  const [values = '', step, ...more] = part.split('/');
  const [from = '', to, ...beyond] = values.split('-');
  if (more.length > 0 || beyond.length > 0 || part === '')
    throw new CronError(
      `"${part}" is no ${field.name}: a value, a range such as 1-5 or a step such as */2 is expected.`,
    );
  if (step !== undefined) checkStep(step, field);
  if (values === '*') return;
  const first = numberOf(from, field);
  if (to === undefined) {
    if (step !== undefined)
      throw new CronError(`"${part}" has a step and no range: */${step} or ${from}-${field.most}/${step} is expected.`);
    return;
  }
  // A week may end with its first day.
  const last = field.words === days && to.toUpperCase() === 'SUN' ? 7 : numberOf(to, field);
  if (first > last) throw new CronError(`The range "${values}" of the ${field.name} ends before it begins.`);
};

const fromWall = (wall: Temporal.PlainDateTime): Date => new Date(wall.toZonedDateTime('UTC').epochMilliseconds);
const toWall = (date: Date): Temporal.PlainDateTime =>
  Temporal.Instant.fromEpochMilliseconds(date.getTime()).toZonedDateTimeISO('UTC').toPlainDateTime();

/**
 * Reads minute, hour, day of month, month and day of week: `*`, lists, ranges, steps, names of months and days, 0 and 7 for
 * Sunday. Where both days are restricted either one is enough. Throws `CronError`.
 */
export const parseCron = (text: string): CronExpression => {
  const parts = text
    .trim()
    .split(/\s+/)
    .filter((part) => part !== '');
  if (parts.length !== fields.length)
    throw new CronError(
      `Five fields are expected: ${fields.map(({ name }) => name).join(', ')}. Here are ${parts.length}.`,
    );
  for (const [index, field] of fields.entries())
    for (const part of (parts[index] as string).split(',')) checkPart(part, field);
  // Without a zone of its own: a wall clock that no clock change moves.
  const cron = new Cron(parts.join(' '), { mode: '5-part', timezone: 'UTC', paused: true });
  return {
    after(wall) {
      const next = cron.nextRun(fromWall(wall));
      return next === null ? null : toWall(next);
    },
  };
};

/** The IANA name of a zone as the database of zones spells it; null: there is none of this name. */
export const timeZoneName = (name: string): string | null => {
  // Offsets are understood, too, and are no names.
  if (!/^[A-Za-z]/.test(name)) return null;
  try {
    return new Temporal.ZonedDateTime(0n, name).timeZoneId;
  } catch {
    return null;
  }
};

/**
 * When an expression next occurs in a zone after an instant and before another one, epoch milliseconds; null: not at all. A
 * local time that a clock change skips is none; one that comes twice is the earlier of both instants.
 */
export const nextOccurrence = (
  cron: CronExpression,
  timeZone: string,
  afterMs: number,
  beforeMs: number,
): number | null => {
  const after = Temporal.Instant.fromEpochMilliseconds(afterMs);
  const last = Temporal.Instant.fromEpochMilliseconds(beforeMs).toZonedDateTimeISO(timeZone).toPlainDateTime();
  let wall = cron.after(after.toZonedDateTimeISO(timeZone).toPlainDateTime());
  for (; wall !== null; wall = cron.after(wall)) {
    if (Temporal.PlainDateTime.compare(wall, last) > 0) return null;
    const instant = occurrenceAt(wall, timeZone);
    if (instant !== null && instant > afterMs) return instant < beforeMs ? instant : null;
  }
  return null;
};

const occurrenceAt = (wall: Temporal.PlainDateTime, timeZone: string): number | null => {
  const zoned = wall.toZonedDateTime(timeZone, { disambiguation: 'earlier' });
  return zoned.toPlainDateTime().equals(wall) ? zoned.epochMilliseconds : null;
};
