import { invalidField } from '../../contract/errors.ts';
import { CronError, type CronExpression, nextOccurrence, parseCron, timeZoneName } from '../../scheduler/cron.ts';

const dayMs = 86_400_000;
// A leap day is at most four years away from the moment after the last one.
const savedWithinMs = 4 * 366 * dayMs;
// Eight years lie between the leap days around a century that has none.
const firedWithinMs = 9 * 366 * dayMs;

/** When a schedule occurs: its expression in its zone. */
export interface Occurrences {
  readonly cron: string;
  readonly timeZone: string;
}

/** The zone as the database of zones spells it. Throws `validation-failed`. */
export const readTimeZone = (name: string): string => {
  const zone = timeZoneName(name);
  if (zone === null) throw invalidField('timeZone', 'is no IANA time zone such as Europe/Berlin');
  return zone;
};

const readCron = (text: string): CronExpression => {
  try {
    return parseCron(text);
  } catch (error) {
    if (error instanceof CronError)
      throw invalidField('cron', `is no cron expression: ${error.message.replace(/\.$/, '')}`);
    throw error;
  }
};

/** The first occurrence after a moment. Throws `validation-failed` where none comes within four years. */
export const firstOccurrence = ({ cron, timeZone }: Occurrences, now: number): number => {
  const next = nextOccurrence(readCron(cron), timeZone, now, now + savedWithinMs);
  if (next === null) throw invalidField('cron', 'has no occurrence in the next four years');
  return next;
};

export type FollowingOccurrence = (occurrences: Occurrences, now: number) => number | null;

/** The same for a schedule that was saved before; null: none comes any more. Throws CronError, and RangeError for a zone. */
export const followingOccurrence: FollowingOccurrence = ({ cron, timeZone }, now) =>
  nextOccurrence(parseCron(cron), timeZone, now, now + firedWithinMs);

// Expressions that a look tells apart at most; those that are due together are mostly alike.
const maxRemembered = 1000;

/** `followingOccurrence` of many schedules: what two of them have in common is worked out once. */
export const rememberOccurrences = (): FollowingOccurrence => {
  const answers = new Map<string, { readonly from: number; readonly next: number | null }>();
  return (occurrences, now) => {
    const key = `${occurrences.timeZone} ${occurrences.cron}`;
    const answer = answers.get(key);
    // None lies between: the next one stays so until it comes.
    if (answer !== undefined && now >= answer.from && (answer.next === null || now < answer.next)) return answer.next;
    const next = followingOccurrence(occurrences, now);
    if (answers.size >= maxRemembered) answers.clear();
    answers.set(key, { from: now, next });
    return next;
  };
};
