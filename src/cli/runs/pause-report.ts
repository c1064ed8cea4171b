import type { Client } from '../../client/client.ts';
import { padText, safeLine } from '../../text/text-width.ts';
import type { Terminal } from '../output/terminal.ts';
import { waitingCallText } from '../output/waiting-call.ts';
import type { Session } from '../session.ts';
import { type NextCommand, nextCommands, shellLine } from './next-commands.ts';
import type { RunPause } from './run-pause.ts';

const labels = { approve: 'approve', reject: 'reject', result: 'result', error: 'or error' } as const;
const labelWidth = Math.max(...Object.values(labels).map(({ length }) => length));

/** The calls of a paused run, each with the id that an answer names. */
const waitingText = ({ approvals, clientToolCalls }: RunPause, { noteStyle, width }: Terminal): string =>
  [
    ...approvals.map((call) =>
      waitingCallText(`approval ${safeLine(call.requestId)} is needed for`, call, width, noteStyle),
    ),
    ...clientToolCalls.map((call) =>
      waitingCallText(`call ${safeLine(call.callId)} waits for the result of`, call, width, noteStyle),
    ),
  ].join('');

/** One command a line, ready to be copied. */
export const commandLines = (commands: readonly NextCommand[], { noteStyle }: Terminal): string =>
  commands
    .map(({ answer, words }) => `  ${padText(labels[answer], labelWidth)}  ${noteStyle.bold(shellLine(words))}`)
    .join('\n');

/**
 * Says on stderr what a run waits for and which commands answer it: as text, or with `--json` as one object. `shown`:
 * the calls are on the screen already.
 */
export const reportPause = async (
  { terminal, globals }: Session,
  pause: RunPause,
  commands: readonly NextCommand[],
  shown = false,
): Promise<void> => {
  if (globals.json) {
    const next = commands.map(({ answer, words }) => ({ answer, command: shellLine(words), words }));
    terminal.noteJson(JSON.stringify({ ...pause, next }, null, 2));
    return;
  }
  if (!shown) terminal.note(waitingText(pause, terminal).trimEnd());
  terminal.note(commandLines(commands, terminal));
};

/** The same for a run that another command started. */
export const reportFoundPause = async (session: Session, client: Client, pause: RunPause): Promise<void> =>
  reportPause(session, pause, await nextCommands(client, session.globals, pause));
