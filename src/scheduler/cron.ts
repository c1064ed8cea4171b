import { Cron } from 'croner';

/** Five fields of a cron expression, read; times in it are of a wall clock without a zone. */
export interface CronExpression {
  /** The minute or hour field begins with `*`: the times are an interval in real time. Else they are fixed local times. */
  readonly isInterval: boolean;
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
    isInterval: parts.slice(0, 2).some((part) => part.startsWith('*')),
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

/** The next instant, epoch milliseconds, at which the clock of a zone shows a matching time; each pass of a repeated hour counts. */
const nextOfInterval = (cron: CronExpression, timeZone: string, afterMs: number, beforeMs: number): number | null => {
  let from = Temporal.Instant.fromEpochMilliseconds(afterMs).toZonedDateTimeISO(timeZone);
  let wall = cron.after(from.toPlainDateTime());
  for (;;) {
    const change = from.getTimeZoneTransition('next');
    // Until its next change the clock of the zone is as far from UTC as now.
    const instant = wall === null ? null : wall.toZonedDateTime('UTC').epochMilliseconds - from.offsetNanoseconds / 1e6;
    if (instant !== null && (change === null || instant < change.epochMilliseconds))
      return instant < beforeMs ? instant : null;
    if (change === null || change.epochMilliseconds >= beforeMs) return null;
    from = change;
    // The first time after the change may match itself.
    wall = cron.after(from.toPlainDateTime().subtract({ seconds: 1 }));
  }
};

/**
 * The instant of a fixed local time, epoch milliseconds: the earlier one of a time that occurs twice, and the first instant
 * after the gap for a time that a clock change skips.
 */
const instantOf = (wall: Temporal.PlainDateTime, timeZone: string): number | null => {
  const zoned = wall.toZonedDateTime(timeZone, { disambiguation: 'earlier' });
  if (zoned.toPlainDateTime().equals(wall)) return zoned.epochMilliseconds;
  return zoned.getTimeZoneTransition('next')?.epochMilliseconds ?? null;
};

const nextOfFixedTimes = (cron: CronExpression, timeZone: string, afterMs: number, beforeMs: number): number | null => {
  const after = Temporal.Instant.fromEpochMilliseconds(afterMs);
  const last = Temporal.Instant.fromEpochMilliseconds(beforeMs).toZonedDateTimeISO(timeZone).toPlainDateTime();
  let wall = cron.after(after.toZonedDateTimeISO(timeZone).toPlainDateTime());
  for (; wall !== null; wall = cron.after(wall)) {
    if (Temporal.PlainDateTime.compare(wall, last) > 0) return null;
    const instant = instantOf(wall, timeZone);
    if (instant !== null && instant > afterMs) return instant < beforeMs ? instant : null;
  }
  return null;
};

/**
 * When an expression next occurs in a zone after an instant and before another one, epoch milliseconds; null: not at all.
 * Clock changes as cron handles them: an interval continues in real time; a fixed time that is skipped occurs once, at the
 * first instant after the gap, and one that is repeated once, at the earlier instant.
 */
export const nextOccurrence = (
  cron: CronExpression,
  timeZone: string,
  afterMs: number,
  beforeMs: number,
): number | null => (cron.isInterval ? nextOfInterval : nextOfFixedTimes)(cron, timeZone, afterMs, beforeMs);

/** Whether an occurrence, epoch milliseconds, has another local time than the expression names, since a clock change skips that one. */
export const isMovedOccurrence = (cron: CronExpression, timeZone: string, atMs: number): boolean => {
  const wall = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDateTime();
  return cron.after(wall.subtract({ seconds: 1 }))?.equals(wall) !== true;
};
