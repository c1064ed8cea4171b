import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { type FollowedJob, followJob, followJobs, type JobFilter } from '../../client/follow-jobs.ts';
import { AcpError } from '../../contract/errors.ts';
import { hasEnded, type ShownJob } from '../../text/job-line.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import { barLine, failedItemsExitCode, failureLines, jobExitCode, jobLine, sumLine } from '../jobs/job-report.ts';
import type { Session } from '../session.ts';

interface WatchOptions {
  readonly handlerKey?: string;
  readonly lane?: string;
  readonly schedule?: string;
}

/** Lines of a log tell of items after each further part of them, so that thousands of items are some lines. */
const parts = 20;

/** Where a job stands, as coarse as a log wants it. */
const stageOf = ({ status, attempt, doneItems, failedItems, totalItems }: ShownJob): string => {
  const part = totalItems === 0 ? 0 : Math.floor(((doneItems + failedItems) / totalItems) * parts);
  return `${status} ${attempt} ${part}`;
};

/** Says why it waits, and not each time that it has tried. */
const tellRetry = ({ terminal }: Session): ((error: AcpError) => void) => {
  let told = '';
  return ({ message }) => {
    if (message === told) return;
    told = message;
    terminal.redraw('');
    terminal.note(terminal.noteStyle.dim(`${message} Trying again.`));
  };
};

/** Prints what changes: as JSON each change, else lines; on a terminal what only moves is a bar below them. */
const changePrinter = ({ terminal, globals }: Session, named: boolean) => {
  const stages = new Map<string, string>();
  return async (job: ShownJob): Promise<void> => {
    if (globals.json) return terminal.writeJson(`${JSON.stringify(job)}\n`);
    const [before, stage] = [stages.get(job.id), stageOf(job)];
    if (before === stage) return;
    if (hasEnded(job)) stages.delete(job.id);
    else stages.set(job.id, stage);
    const statusOf = (text = ''): string => text.slice(0, text.lastIndexOf(' '));
    // On a terminal the bar shows the items.
    if (terminal.interactive && statusOf(before) === statusOf(stage)) return;
    terminal.redraw('');
    await terminal.write(jobLine(job, named, Date.now(), terminal.style));
  };
};

const barMs = 500;

/** Draws a line anew twice a second while the work goes on, since time passes without a change. */
const withBar = async <T>({ terminal, globals }: Session, line: () => string, work: () => Promise<T>): Promise<T> => {
  if (!terminal.interactive || globals.json) return work();
  const drawing = setInterval(() => terminal.redraw(line()), barMs);
  try {
    return await work();
  } finally {
    clearInterval(drawing);
    terminal.redraw('');
  }
};

const watchOne = async (
  session: Session,
  client: Client,
  id: string,
  local: boolean,
  signal: AbortSignal,
): Promise<number> => {
  const { terminal, globals } = session;
  const print = changePrinter(session, false);
  let last: FollowedJob | null = null;
  await withBar(
    session,
    () => (last === null || hasEnded(last.job) ? '' : barLine(last.job, Date.now())),
    async () => {
      for await (const seen of followJob(client, id, { signal, onRetry: tellRetry(session) })) {
        last = seen;
        await print(seen.job);
        if (local && !hasEnded(seen.job))
          throw new AcpError('cannot-connect', 'No service runs on this store, so nobody works on the job.');
      }
    },
  );
  const seen = last as FollowedJob | null;
  if (seen === null) return 0;
  if (!globals.json) for (const line of failureLines(seen)) terminal.note(line);
  return jobExitCode(seen.job);
};

const watchAll = async (session: Session, client: Client, filter: JobFilter, signal: AbortSignal): Promise<void> => {
  const { terminal } = session;
  const print = changePrinter(session, true);
  const open = new Map<string, ShownJob>();
  let isFirst = true;
  await withBar(
    session,
    () => (open.size === 0 ? '' : sumLine([...open.values()])),
    async () => {
      for await (const changed of followJobs(client, filter, { signal, onRetry: tellRetry(session) })) {
        for (const job of changed) {
          if (hasEnded(job)) open.delete(job.id);
          else open.set(job.id, job);
          await print(job);
        }
        // From here on no job is missed.
        if (isFirst) {
          terminal.redraw('');
          terminal.note(terminal.noteStyle.dim('waiting for jobs; Ctrl-C ends'));
        }
        isFirst = false;
      }
    },
  );
};

const filterOf = async (client: Client, options: WatchOptions): Promise<JobFilter> => {
  const { handlerKey, lane, schedule } = options;
  const id = schedule === undefined ? undefined : (await client.schedules.get({ params: { name: schedule } })).body.id;
  return {
    ...(handlerKey === undefined ? {} : { handlerKey }),
    ...(lane === undefined ? {} : { lane }),
    ...(id === undefined ? {} : { scheduleId: id }),
  };
};

const watch = async (session: Session, { args, options }: Invocation): Promise<number> => {
  const [id] = args as [string | undefined];
  if (id !== undefined && Object.keys(options).length > 0)
    throw new AcpError(
      'validation-failed',
      '--handler-key, --lane and --schedule choose among all jobs; with an id leave them out.',
    );
  using interruption = leaveOnInterrupt(new Error('interrupted'));
  const signal = AbortSignal.any([interruption.signal, session.terminal.closed]);
  try {
    return await session.connected(async ({ client, local }) => {
      if (id !== undefined) return watchOne(session, client, id, local, signal);
      if (local)
        throw new AcpError('cannot-connect', 'No service runs on this store, so there is nothing to wait for.');
      await watchAll(session, client, await filterOf(client, options), signal);
      return 0;
    });
  } catch (error) {
    if (interruption.exitCode !== null) return interruption.exitCode;
    throw error;
  }
};

const exitNote = `
With an id the exit code shows how the job ended: 0 completed, ${failedItemsExitCode} completed with failed items, 5 canceled, otherwise
the code of its error, or 1 without one. The job continues if the command is interrupted.
`;

/** `acp jobs watch`: where a job is, up to its end, or every job. */
export const registerJobsWatch = (jobs: Command, host: CommandHost): void => {
  const command = jobs
    .command('watch')
    .description('follow a job to its end, or every job, with the progress of its items')
    .argument('[id]', 'job to follow; default: all jobs in progress and new ones')
    .option('--handler-key <key>', 'without an id: only jobs of this kind')
    .option('--lane <name>', 'without an id: only jobs of this lane')
    .option('--schedule <name>', 'without an id: only jobs of this schedule');
  command.addHelpText('after', exitNote);
  covers(command, 'jobs.get', 'jobs.list').action(host.act(watch));
};
