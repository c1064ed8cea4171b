import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { AgentRunResponse } from '../../features/runs/runs.schema.ts';
import { runSummary } from '../../text/event-line.ts';
import { type CommandHost, collect, covers, type Invocation, splitPair } from '../command-host.ts';
import { uploadFile } from '../files/upload-file.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import type { Terminal } from '../output/terminal.ts';
import { answerPauses } from '../runs/answer-run.ts';
import { shellLine } from '../runs/next-commands.ts';
import { reportFoundPause } from '../runs/pause-report.ts';
import { noteWhileQueued } from '../runs/queued-note.ts';
import { type AnswerOptions, answersOf } from '../runs/run-answers.ts';
import { pausedExitCode } from '../runs/run-outcome.ts';
import { type FollowedRun, pauseOfAnswer } from '../runs/run-pause.ts';
import { answerText, runStreaming, streamRun } from '../runs/stream-run.ts';
import { noteWarnings } from '../runs/warning-notes.ts';
import type { Connection, Session } from '../session.ts';

interface RunOptions extends AnswerOptions {
  readonly session?: string;
  readonly param?: readonly string[];
  readonly document?: readonly string[];
  readonly attach?: readonly string[];
  readonly culture?: string;
  readonly concurrency?: NonNullable<AgentRunRequest['concurrency']>;
  readonly lane?: string;
  readonly queued?: boolean;
  readonly follow?: boolean;
  /** Undefined unless `--stream` or `--no-stream` was given. */
  readonly stream?: boolean;
  readonly idempotencyKey?: string;
}

const parameterPairs = (pairs: readonly string[]): Record<string, string> =>
  Object.fromEntries(pairs.map((pair) => splitPair(pair, '--param takes name=value')));

const readDocuments = (files: readonly string[]): Promise<{ name: string; content: string }[]> =>
  Promise.all(
    files.map(async (file) => {
      try {
        const content = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
        return { name: basename(file), content };
      } catch (cause) {
        throw new AcpError('validation-failed', `The document ${file} cannot be read as UTF-8 text.`, { cause });
      }
    }),
  );

const isInput = (words: readonly string[]): boolean => words.length === 1 && words[0] === '-';

/** What every turn of a conversation needs, not only the first. */
const everyTurn = ({ param, culture }: RunOptions): AgentRunRequest => ({
  ...(param === undefined ? {} : { parameters: parameterPairs(param) }),
  ...(culture === undefined ? {} : { culture }),
});

const everyTurnWords = ({ param = [], culture, stream }: RunOptions): string[] => [
  ...param.flatMap((pair) => ['--param', pair]),
  ...(culture === undefined ? [] : ['--culture', culture]),
  ...(stream === undefined ? [] : [stream ? '--stream' : '--no-stream']),
];

const requestOf = async (
  words: readonly string[],
  options: RunOptions,
  terminal: Terminal,
): Promise<AgentRunRequest> => {
  const message = isInput(words) ? await terminal.readInput() : words.join(' ');
  return {
    ...everyTurn(options),
    ...(message === '' ? {} : { message }),
    ...(options.session === undefined ? {} : { sessionId: options.session }),
    ...(options.document === undefined ? {} : { documents: await readDocuments(options.document) }),
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...(options.lane === undefined ? {} : { lane: options.lane }),
  };
};

const printAnswer = async (session: Session, answer: AgentRunResponse): Promise<void> => {
  const { terminal, globals } = session;
  noteWarnings(terminal, answer.warnings);
  if (globals.json) return session.print(answer);
  if (answer.output !== null && answer.output !== '') await terminal.write(`${answerText(session, answer.output)}\n`);
  const parts = [answer.status.toLowerCase(), runSummary({ ...answer }), `run ${answer.runId}`];
  terminal.note(terminal.noteStyle.dim(parts.filter((part) => part !== '').join(' · ')));
};

const startQueued = async (
  session: Session,
  connection: Connection,
  name: string,
  body: AgentRunRequest,
  follow: boolean,
): Promise<number> => {
  const { client } = connection;
  const { terminal } = session;
  const reply = await client.runs.start({ params: { name }, headers: { prefer: 'respond-async' }, body });
  if (reply.status !== 202) throw new AcpError('cannot-connect', 'The service did not queue the run.');
  const { runId } = reply.body;
  if (!follow) {
    await session.print(reply.body, () => `${runId}\n`);
    if (connection.local) terminal.note('It starts when a service runs on this store: `acp serve`.');
    return 0;
  }
  if (connection.local)
    throw new AcpError('cannot-connect', `Run ${runId} is queued, and no service runs on this store to execute it.`);
  using _note = noteWhileQueued(session, connection, runId);
  const run = await streamRun(session, connection, async (signal) => ({
    runId,
    reply: await client.runs.events({ params: { runId }, signal }),
  }));
  if (run.pause !== null) await reportFoundPause(session, client, run.pause);
  return run.exitCode;
};

const startForAnswer = async (
  session: Session,
  { client }: Connection,
  name: string,
  body: AgentRunRequest,
  key: string | undefined,
): Promise<FollowedRun> => {
  using interruption = leaveOnInterrupt(new AcpError('run-canceled', 'The run was canceled.'));
  try {
    const reply = await client.runs.start({
      params: { name },
      // Whoever interrupts the command wants the run to stop.
      query: { onDisconnect: 'cancel' },
      headers: key === undefined ? {} : { 'idempotency-key': key },
      body: key === undefined ? { ...body, stream: false } : body,
      signal: interruption.signal,
    });
    if (reply.status !== 200 || reply.frames !== undefined)
      throw new AcpError('cannot-connect', 'The service did not answer with the result of the run.');
    await printAnswer(session, reply.body);
    const pause = pauseOfAnswer(reply.body);
    return { exitCode: pause === null ? 0 : pausedExitCode, pause };
  } catch (error) {
    if (interruption.exitCode !== null) return { exitCode: interruption.exitCode, pause: null };
    throw error;
  }
};

/** One after another, so that a file that is refused keeps the rest from being sent. */
const uploadAll = async ({ client }: Connection, files: readonly string[]): Promise<string[]> => {
  const ids: string[] = [];
  for (const file of files) ids.push((await uploadFile(client, file)).id);
  return ids;
};

/**
 * The session of a person at a terminal who named none. Only with one can a call wait for an approval, and whether the
 * agent has such a call shows when it is made; it is too late then. A script gets none that it did not ask for: it would
 * leave a session behind with every run. An idempotency key wants the same request again, which a new id is not.
 */
const ownSession = ({ terminal, globals }: Session, words: readonly string[], options: RunOptions): string | null =>
  options.session === undefined &&
  options.queued !== true &&
  options.idempotencyKey === undefined &&
  terminal.canAsk &&
  !globals.json &&
  // The end of stdin has been read, so nobody can be asked.
  !isInput(words)
    ? `cli-${randomBytes(8).toString('hex')}`
    : null;

const runAgent = async (session: Session, { args, options }: Invocation): Promise<number> => {
  const [name, words] = args as [string, string[]];
  const chosen = options as RunOptions;
  const { terminal, globals } = session;
  const request = await requestOf(words, chosen, terminal);
  const wantsAnswer = chosen.stream === false || (globals.json && chosen.stream !== true);
  return session.connected(async (connection) => {
    const attachmentIds = await uploadAll(connection, chosen.attach ?? []);
    const body = {
      ...request,
      ...(attachmentIds.length === 0 ? {} : { attachmentIds }),
      ...(await answersOf(connection.client, chosen.session, chosen)),
    };
    if (chosen.queued === true) return startQueued(session, connection, name, body, chosen.follow === true);
    const start = (turn: AgentRunRequest, key?: string): Promise<FollowedRun> =>
      wantsAnswer || key !== undefined
        ? startForAnswer(session, connection, name, turn, key)
        : runStreaming(session, connection, name, turn);
    const own = ownSession(session, words, chosen);
    const first =
      own === null
        ? await start(body, chosen.idempotencyKey)
        : await start({ ...body, sessionId: own }).catch((error: unknown) => {
            // Who cannot own a session still gets an answer, as before.
            if (error instanceof AcpError && error.code === 'session-owner-required') return start(body);
            throw error;
          });
    const exitCode = await answerPauses(session, first, {
      agentName: name,
      carried: everyTurnWords(chosen),
      goOn: (sessionId, answers) => start({ ...everyTurn(chosen), sessionId, ...answers }),
    });
    if (own !== null && exitCode === 0)
      terminal.note(terminal.noteStyle.dim(`go on with: ${shellLine(['acp', 'run', name, '--session', own])} ...`));
    return exitCode;
  });
};

const exitNote = `
A run that waits for approvals or for results of client-side tools prompts for them on a terminal. Otherwise it prints the
commands that continue it, and ends with exit code ${pausedExitCode}.
`;

/** `acp run`: one message to an agent, its answer as it is written. */
export const registerRun = (host: CommandHost): void => {
  const command = host.program
    .command('run')
    .description('send a message to an agent and show its response as it streams')
    .argument('<agent>', 'name of the agent')
    .argument('[message...]', 'the message; `-` reads the standard input')
    .option('-s, --session <id>', 'session to continue or create; default on a terminal: a new one')
    .option('-p, --param <name=value>', 'value of a declared parameter (repeatable)', collect)
    .option('-d, --document <file>', 'text file to send as reference (repeatable)', collect)
    .option('-a, --attach <file>', 'image, PDF, audio or text file to upload for the run (repeatable)', collect)
    .option('--approve <request>', 'approve a call that the session waits for, or `all` (repeatable)', collect)
    .option('--reject <request>', 'reject a call that the session waits for, or `all` others (repeatable)', collect)
    .option('--reason <text>', 'with --reject: reason for the model')
    .option('--tool-result <call=text>', 'result of a client-side tool call (repeatable)', collect)
    .option('--tool-error <call=text>', 'the client-side tool call failed (repeatable)', collect)
    .option('--culture <tag>', 'language of the instructions, such as de-AT')
    .option('--concurrency <policy>', 'when the session is busy: Reject, Enqueue, Interrupt or Rollback')
    .option('--stream', 'with --json: print each event as it happens, one per line')
    .option('--no-stream', 'wait for the complete response')
    .option('--queued', 'queue the run and print its id')
    .option('--follow', 'with --queued: follow the run as it executes')
    .option('--lane <name>', 'with --queued: lane of the queue')
    .option('--idempotency-key <key>', 'a repeat with the same key gets the same response; implies --no-stream');
  command.addHelpText('after', exitNote);
  covers(command, 'runs.start').action(host.act(runAgent));
};
