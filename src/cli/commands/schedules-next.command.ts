import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { JobSchedule } from '../../features/schedules/schedules.schema.ts';
import { distanceWords, occurrenceWords } from '../../text/occurrence-words.ts';
import { padText, safeLine, textWidth } from '../../text/text-width.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import type { Terminal } from '../output/terminal.ts';
import type { Session } from '../session.ts';

const most = 1000;
// Eight years lie between the leap days around a century that has none.
const withinMs = 9 * 366 * 86_400_000;

const countOf = (text: string): number => {
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text);
  throw new AcpError('validation-failed', `--count is a whole number from 1 to ${most}, not "${text}".`);
};

interface Upcoming {
  /** Epoch milliseconds. */
  readonly at: number;
  /** A clock change skips the local time that the expression names. */
  readonly isMoved: boolean;
}

/** The next times of a schedule: first the one that the service waits for, or that is due already. */
const upcoming = async (
  { cron, timeZone, nextRunAt }: JobSchedule,
  count: number,
  now: number,
): Promise<Upcoming[]> => {
  if (cron === null) return [];
  const { isMovedOccurrence, nextOccurrence, parseCron } = await import('../../scheduler/cron.ts');
  const expression = parseCron(cron);
  const times = nextRunAt === null ? [] : [Date.parse(nextRunAt)];
  while (times.length < count) {
    // What was missed makes one job together, so the following ones are those from now on.
    const after = Math.max(times.at(-1) ?? now, now);
    const next = nextOccurrence(expression, timeZone, after, after + withinMs);
    if (next === null) break;
    times.push(next);
  }
  return times.map((at) => ({ at, isMoved: isMovedOccurrence(expression, timeZone, at) }));
};

const occurrence = ({ at, isMoved }: Upcoming, timeZone: string) => ({
  at: new Date(at).toISOString(),
  local: Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toString(),
  isMoved,
});

const timesText = (times: readonly Upcoming[], timeZone: string, now: number, { style }: Terminal): string => {
  const lines = times.map(({ at, isMoved }) => ({
    words: safeLine(occurrenceWords(at, timeZone)),
    distance: at - now,
    note: isMoved ? ', moved by a clock change' : '',
  }));
  const width = Math.max(0, ...lines.map(({ words }) => textWidth(words)));
  return lines
    .map(({ words, distance, note }) => {
      const far = distance < 0 ? `due ${distanceWords(distance)}` : distanceWords(distance);
      return `${padText(words, width)}  ${style.dim(far)}${style.yellow(note)}\n`;
    })
    .join('');
};

/** What a reader of the times has to know about them; empty: nothing. */
const caveat = ({ name, cron, enabled }: JobSchedule, times: readonly Upcoming[]): string => {
  if (cron === null) return `${name} has no cron: a job comes of it when somebody triggers it.`;
  if (times.length === 0) return `${name} does not occur any more.`;
  return enabled ? '' : `${name} is disabled: no job comes of it at these times unless it is enabled.`;
};

const next = async ({ terminal, globals, print, connected }: Session, { args, options }: Invocation): Promise<void> => {
  const [name] = args as [string];
  const count = countOf(String(options['count']));
  const { body: schedule } = await connected(({ client }) => client.schedules.get({ params: { name } }));
  const { cron, timeZone, enabled } = schedule;
  const now = Date.now();
  const times = await upcoming(schedule, count, now);
  await print({ name, cron, timeZone, enabled, occurrences: times.map((time) => occurrence(time, timeZone)) }, () =>
    timesText(times, timeZone, now, terminal),
  );
  if (globals.json) return;
  const note = caveat(schedule, times);
  if (note !== '') terminal.note(terminal.noteStyle.yellow(safeLine(note)));
};

/** `acp schedules next`: when jobs come of a schedule, on the wall clock of its zone. */
export const registerSchedulesNext = (schedules: Command, host: CommandHost): void => {
  const command = schedules
    .command('next')
    .description('show the next times of a schedule, in its time zone')
    .argument('<name>')
    .option('-n, --count <n>', `number of times, from 1 to ${most}`, '5');
  covers(command, 'schedules.get').action(host.act(next));
};
