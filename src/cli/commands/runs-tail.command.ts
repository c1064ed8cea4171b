import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { followEvents, passesByItself, pause } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import type { Frame } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { eventLine, frameData } from '../../text/event-line.ts';
import { formatTime } from '../../text/format.ts';
import { safeLine, safeText } from '../../text/text-width.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import type { Terminal } from '../output/terminal.ts';
import { nextCommands } from '../runs/next-commands.ts';
import { commandLines } from '../runs/pause-report.ts';
import { exitCodeOf } from '../runs/run-outcome.ts';
import { pauseOfFrame } from '../runs/run-pause.ts';
import type { Session } from '../session.ts';

const pageSize = 200;

/**
 * Finds runs as they appear, children included, oldest first. The first look gives those in progress, each later one
 * every run that started since.
 */
const runWatcher = (
  client: Client,
  agentName: string | undefined,
  signal: AbortSignal,
): (() => Promise<readonly RunRecord[]>) => {
  let newest: string | null = null;
  const page = async (skip: number): Promise<readonly RunRecord[]> => {
    const query = { includeChildren: true, skip, take: pageSize, ...(agentName === undefined ? {} : { agentName }) };
    return (await client.runs.list({ query, signal })).body;
  };
  const since = async (lastId: string): Promise<RunRecord[]> => {
    const later = new Map<string, RunRecord>();
    for (let skip = 0; ; skip += pageSize) {
      const rows = await page(skip);
      // Ids rise with time and the list is newest first, so a known one ends the look. A run that starts meanwhile
      // pushes the rows down by one, which the map takes care of.
      for (const row of rows) if (row.id > lastId) later.set(row.id, row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < pageSize || last.id <= lastId) return [...later.values()];
    }
  };
  return async () => {
    const isFirst = newest === null;
    const runs = isFirst ? [...(await page(0))] : await since(newest ?? '');
    newest = runs[0]?.id ?? newest ?? '';
    const wanted = isFirst ? runs.filter(({ status }) => status === 'Queued' || status === 'Running') : runs;
    return wanted.reverse();
  };
};

const pollIntervalMs = 1000;
// Each followed run holds a connection; the rest wait and are read from their logs in turn.
const maxFollowedRuns = 64;

interface TailOptions {
  readonly agent?: string;
  readonly from?: string;
}

/** Events that begin the lines of a run, which name it in full. */
const firstEvents = new Set(['run.queued', 'run.started']);

/** Prints the frames of one run, each line with its time and, where several runs are shown, the run's mark. */
const linePrinter = (terminal: Terminal, mark: string) => {
  const { style } = terminal;
  return async (frame: Frame): Promise<void> => {
    const data = frameData(frame);
    const text = frame.event === 'message.completed' ? data['text'] : null;
    const line =
      typeof text === 'string' && text !== '' ? safeText(text.trimEnd()) : eventLine(frame.event, data, style);
    if (line === null) return;
    const time = typeof data['timestamp'] === 'string' ? formatTime(data['timestamp']).slice(-8) : '        ';
    const head = `${style.dim(time)} ${mark}`;
    if (mark !== '' && firstEvents.has(frame.event)) {
      await terminal.write(`${head}${line} · run ${String(data['runId'])}\n`);
      return;
    }
    for (const part of line.split('\n')) await terminal.write(`${head}${part}\n`);
  };
};

const jsonPrinter =
  (terminal: Terminal) =>
  (frame: Frame): Promise<void> =>
    terminal.writeJson(`${frame.data}\n`);

/** On a terminal, the commands that answer a run that waits; a run that nobody may read any more is no reason to end. */
const tellCommands = async ({ terminal, globals }: Session, client: Client, frame: Frame): Promise<void> => {
  const pause = pauseOfFrame(frame);
  if (pause === null || !terminal.interactive || globals.json) return;
  try {
    const commands = await nextCommands(client, globals, pause);
    // Answered in the meantime.
    if (commands.length > 0) await terminal.write(`${commandLines(commands, terminal)}\n`);
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    terminal.note(error.message);
  }
};

const tailOne = async (
  session: Session,
  client: Client,
  runId: string,
  from: number | undefined,
  signal: AbortSignal,
): Promise<number> => {
  const { terminal, globals } = session;
  const print = globals.json ? jsonPrinter(terminal) : linePrinter(terminal, '');
  const onRetry = (error: AcpError): void => terminal.note(terminal.noteStyle.dim(`${error.message} Trying again.`));
  let exitCode = 0;
  for await (const frame of followEvents(client, runId, { from, signal, onRetry })) {
    await print(frame);
    await tellCommands(session, client, frame);
    if (terminalEvents.has(frame.event)) exitCode = exitCodeOf(frame) ?? 0;
  }
  return exitCode;
};

/** `hello 3f9c1a ` — the end of an id is its random part, so that runs of one moment differ. */
const markOf = ({ agentName, id }: RunRecord, terminal: Terminal): string =>
  `${terminal.style.cyan(safeLine(agentName))} ${terminal.style.dim(id.slice(-6))} `;

/** Follows every run that appears, a bounded number at once, until the signal ends it. */
const tailAll = async (
  session: Session,
  client: Client,
  agentName: string | undefined,
  signal: AbortSignal,
): Promise<never> => {
  const { terminal, globals } = session;
  const look = runWatcher(client, agentName, signal);
  const waiting: RunRecord[] = [];
  const following = new Set<string>();
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);

  const follow = async (run: RunRecord): Promise<void> => {
    const print = globals.json ? jsonPrinter(terminal) : linePrinter(terminal, markOf(run, terminal));
    for await (const frame of followEvents(client, run.id, { signal: ended })) {
      await print(frame);
      await tellCommands(session, client, frame);
    }
  };
  const startWaiting = (): void => {
    while (following.size < maxFollowedRuns) {
      const run = waiting.shift();
      if (run === undefined) return;
      following.add(run.id);
      follow(run)
        .catch((error: unknown) => {
          // A run that cannot be read any more does not keep the others from being shown.
          if (error instanceof AcpError) terminal.note(`run ${run.id}: ${error.message}`);
          else failed.abort(error);
        })
        .finally(() => {
          following.delete(run.id);
          startWaiting();
        });
    }
  };

  for (let isFirst = true; ; isFirst = false) {
    try {
      waiting.push(...(await look()));
      // From here on no run is missed.
      if (isFirst) terminal.note(terminal.noteStyle.dim('waiting for runs; Ctrl-C ends'));
    } catch (error) {
      // A service that was never there is told at once; one that restarts is waited for.
      if (isFirst || !passesByItself(error)) throw error;
    }
    startWaiting();
    await pause(pollIntervalMs, ended);
  }
};

const tail = async (session: Session, { args, options }: Invocation): Promise<number> => {
  const [runId] = args as [string | undefined];
  const { agent, from } = options as TailOptions;
  if (from !== undefined && !/^\d{1,15}$/.test(from))
    throw new AcpError('validation-failed', '--from takes the sequence of an event, a whole number from 0.');
  using interruption = leaveOnInterrupt(new Error('interrupted'));
  const signal = AbortSignal.any([interruption.signal, session.terminal.closed]);
  try {
    return await session.connected(({ client, local }) => {
      // An event is after `last`, so the one before `--from` is the last that is known.
      if (runId !== undefined)
        return tailOne(session, client, runId, from === undefined ? undefined : Number(from) - 1, signal);
      if (local)
        throw new AcpError('cannot-connect', 'No service runs on this store, so there is nothing to wait for.');
      return tailAll(session, client, agent, signal);
    });
  } catch (error) {
    if (interruption.exitCode !== null) return interruption.exitCode;
    throw error;
  }
};

/** `acp runs tail`: events as they happen, of one run or of all. */
export const registerRunsTail = (runs: Command, host: CommandHost): void => {
  const command = runs
    .command('tail')
    .description('follow a run, or every run, as it happens')
    .argument('[run-id]', 'live or finished run; default: all runs that are in progress or start')
    .option('--from <sequence>', 'with a run: first event to show')
    .option('--agent <name>', 'without a run: only runs of this agent');
  covers(command, 'runs.events').action(host.act(tail));
};
