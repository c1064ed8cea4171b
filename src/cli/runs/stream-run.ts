import type { FramesReply } from '../../client/client.ts';
import { followStarted } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import type { Frame } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import { type EventData, eventLine, frameData } from '../../text/event-line.ts';
import { safeText } from '../../text/text-width.ts';
import { interruptedExitCode, onInterrupt } from '../interrupt.ts';
import type { Connection, Session } from '../session.ts';
import { exitCodeOf } from './run-outcome.ts';
import { type FollowedRun, pauseOfFrame, type RunPause } from './run-pause.ts';
import { noteWarningFrame, withoutWarnings } from './warning-notes.ts';

/** Events that say nothing beside the answer and its summary. */
const quiet = new Set([
  'message.delta',
  'message.completed',
  'run.queued',
  'run.started',
  'usage.updated',
  // What waits is shown whole at the end of the run.
  'approval.requested',
  'client-tool.requested',
]);

/** Text of an answer: made safe for a terminal, untouched for a file or a pipe. */
export const answerText = ({ terminal }: Session, text: string): string =>
  terminal.interactive ? safeText(text) : text;

/** Where to say what happens beside the answer: on stderr, so that a redirected stdout holds the answer alone. */
export type Aside = 'stderr' | 'stdout';

/** A call that failed because a run without a session cannot wait. */
const lacksSession = (event: string, data: EventData): boolean =>
  event === 'tool.failed' && /^(?:approval|client-tool)-needs-session\b/.test(String(data['error']));

const sessionHint =
  'hint: A call that has to wait needs a session: name one with --session, such as --session my-work.';

const deltaText = ({ event }: Frame, { text }: EventData): string =>
  event === 'message.delta' && typeof text === 'string' ? text : '';

/** Whether the answer on stdout ended with a line; shared with the notes that come in between. */
interface Cursor {
  atLineStart: boolean;
}

/** A note while an answer may be half written: on a terminal it gets a line of its own, a file holds the answer alone. */
const noteBetween = ({ terminal }: Session, cursor: Cursor, line: string): void => {
  if (!cursor.atLineStart && terminal.interactive) {
    cursor.atLineStart = true;
    terminal.write('\n').catch(() => undefined);
  }
  terminal.note(terminal.noteStyle.dim(line));
};

/** Prints frames as they arrive and resolves with the outcome. */
const printFrames = async (
  frames: AsyncIterable<Frame>,
  session: Session,
  aside: Aside,
  cursor: Cursor,
): Promise<FollowedRun> => {
  const { terminal } = session;
  const style = aside === 'stdout' ? terminal.style : terminal.noteStyle;
  let exitCode = 1;
  let pause: RunPause | null = null;
  let wantsSession = false;
  const endLine = async (): Promise<void> => {
    if (!cursor.atLineStart) await terminal.write('\n');
    cursor.atLineStart = true;
  };
  for await (const frame of withoutWarnings(frames, terminal)) {
    exitCode = exitCodeOf(frame) ?? exitCode;
    pause = pauseOfFrame(frame) ?? pause;
    const data = frameData(frame);
    wantsSession ||= lacksSession(frame.event, data);
    const text = deltaText(frame, data);
    if (text !== '') {
      await terminal.write(answerText(session, text));
      cursor.atLineStart = text.endsWith('\n');
    }
    // A loop answers several times in one run; the answers do not run into each other.
    if (frame.event === 'message.completed') await endLine();
    const line = quiet.has(frame.event) ? null : eventLine(frame.event, data, style);
    if (line === null) continue;
    await endLine();
    const told = style.dim(terminalEvents.has(frame.event) ? `${line} · run ${String(data['runId'])}` : line);
    if (aside === 'stdout') await terminal.write(`${told}\n`);
    else terminal.note(told);
  }
  if (wantsSession) terminal.note(terminal.noteStyle.yellow(sessionHint));
  return { exitCode, pause };
};

const printJsonFrames = async (frames: AsyncIterable<Frame>, { terminal }: Session): Promise<FollowedRun> => {
  let exitCode = 1;
  let pause: RunPause | null = null;
  for await (const frame of frames) {
    exitCode = exitCodeOf(frame) ?? exitCode;
    pause = pauseOfFrame(frame) ?? pause;
    await terminal.writeJson(`${frame.data}\n`);
    noteWarningFrame(terminal, frame);
  }
  return { exitCode, pause };
};

/** A run that was started or found, with the stream of its events. */
export interface OpenedRun {
  readonly runId: string;
  readonly reply: FramesReply;
}

/**
 * Opens a run and follows it to its end; resolves with its outcome. The first Ctrl-C asks the service to cancel the
 * run and waits for the outcome; the second one leaves, and with it ends a run that executes in this process.
 */
export const streamRun = async (
  session: Session,
  { client }: Connection,
  open: (signal: AbortSignal) => Promise<OpenedRun>,
  aside: Aside = 'stderr',
): Promise<FollowedRun> => {
  const { terminal, globals } = session;
  const cursor: Cursor = { atLineStart: true };
  const leave = new AbortController();
  const signal = AbortSignal.any([leave.signal, terminal.closed]);
  let runId: string | null = null;
  let interrupted: number | null = null;
  const release = onInterrupt((name, earlier) => {
    interrupted = interruptedExitCode[name];
    if (earlier > 0 || runId === null) {
      leave.abort(new AcpError('run-canceled', 'The run was left.'));
      return;
    }
    noteBetween(session, cursor, 'canceling; once more leaves without waiting');
    client.runs.cancel({ params: { runId } }).catch((error: unknown) => {
      // It has just finished, and the frames tell how; any other failure means that there is nothing to wait for.
      if (!(error instanceof AcpError) || error.code !== 'run-finished') leave.abort(error);
    });
  });
  const onRetry = (error: AcpError): void => noteBetween(session, cursor, `${error.message} Trying again.`);
  try {
    const opened = await open(signal);
    runId = opened.runId;
    const frames = followStarted(client, runId, opened.reply, { signal, onRetry });
    const run = await (globals.json ? printJsonFrames(frames, session) : printFrames(frames, session, aside, cursor));
    return interrupted === null ? run : { exitCode: interrupted, pause: null };
  } catch (error) {
    if (interrupted !== null && leave.signal.aborted) return { exitCode: interrupted, pause: null };
    throw error;
  } finally {
    release();
  }
};

/** Starts a run as an event stream and shows it to its end. */
export const runStreaming = (
  session: Session,
  connection: Connection,
  name: string,
  body: AgentRunRequest,
  aside?: Aside,
): Promise<FollowedRun> =>
  streamRun(
    session,
    connection,
    async (signal) => {
      const reply = await connection.client.runs.start({ params: { name }, body, signal });
      const runId = reply.headers['x-run-id'];
      if (reply.frames === undefined || runId === undefined)
        throw new AcpError('cannot-connect', 'The service did not answer with the event stream of a run.');
      return { runId, reply };
    },
    aside,
  );
