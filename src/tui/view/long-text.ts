import type { PendingApproval } from '../../features/approvals/approvals.schema.ts';
import type { RunScore } from '../../features/scores/scores.schema.ts';
import { formatTime } from '../../text/format.ts';
import { safeText, visibleLine } from '../../text/text-width.ts';
import { wrapText } from '../../text/wrap-text.ts';
import type { Overlay, Size } from '../state/screen-state.ts';
import type { TimelineItem } from '../state/timeline.ts';
import type { WaitingCall } from '../state/waiting-run.ts';

export const helpText = `Everywhere
  ↑ ↓  j k         choose
  PgUp PgDn Space  a page up or down
  Home End  g G    first, last; runs and events then follow what comes
  ?                this page
  q  Ctrl-C        quit; runs go on

Runs
  Enter            open: its tree, its events as they happen
  f                filters: status, agent, label, session, period, sub-runs
  /                only the runs of one agent
  c                cancel the run and everything it called
  s                score it: 1 to 5 stars, + good, - bad
  y  Y             copy the id of the run, of its session
  o                leave for the command line, with the run
  Tab              approvals, then jobs

One run
  Tab              between its events and its tree
  Enter            all of an event; a called run opens
  i                the whole record of the run, with its scores
  a                answer the calls that wait for you: the session goes on
  c  s  y  Y  o    cancel, score, copy, command line
  Esc              back

Approvals
  Enter            all arguments of the call
  a  r             approve, reject with a reason
  o                open the run that waits
  Tab  Esc         jobs; back to the runs

Jobs
  Enter            open: its items and their runs; a queued run opens itself
  f                all, pending, leased, running, completed, failed, canceled
  c                cancel the job; items that have ended stay
  i  y             the whole record of the job; copy its id
  Tab  Esc         back to the runs; one job: back to the jobs

Cancel, approve, reject and answer ask before they act.`;

/** JSON as people read it; a text that is no JSON stays as it is. */
const pretty = (value: unknown): string => {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') return JSON.stringify(value, null, 2);
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === 'object' && parsed !== null ? JSON.stringify(parsed, null, 2) : value;
  } catch {
    // Results of tools may be plain text.
    return value;
  }
};

const indented = (text: string): string => text.replaceAll(/^/gm, '  ');

const sections = (parts: readonly (readonly [title: string, text: string])[]): string =>
  safeText(
    parts
      .filter(([, text]) => text !== '')
      .map(([title, text]) => `${title}\n${indented(text)}`)
      .join('\n\n'),
  );

/** All of a timeline's item, safe for a terminal. */
export const itemText = (item: TimelineItem): string => {
  if (item.kind === 'message' || item.kind === 'reasoning') return item.text;
  const { data } = item;
  if (item.kind === 'event') return safeText(pretty(data));
  return sections([
    ['Tool', String(data['toolName'] ?? '')],
    ['Call', String(data['toolCallId'] ?? '')],
    ['Arguments', pretty(data['arguments'])],
    ['Result', pretty(data['result'])],
    ['Error', pretty(data['error'])],
  ]);
};

const labelWidth = 10;

const facts = (pairs: readonly (readonly [label: string, value: string])[]): string =>
  pairs
    .filter(([, value]) => value !== '')
    .map(([label, value]) => `${label.padEnd(labelWidth)}${value}`)
    .join('\n');

type Judged = Pick<PendingApproval, 'toolName' | 'presentation' | 'arguments'>;

/** Says, about and tool; what a presenter or a model wrote is shown whole, the characters that show nothing as well. */
const callFacts = ({ toolName, presentation }: Judged): (readonly [label: string, value: string])[] => {
  const about = [presentation?.entityType, presentation?.entityName, presentation?.entityId].filter(
    (part) => typeof part === 'string' && part !== '',
  );
  return [
    ['Says', visibleLine(presentation?.message ?? '')],
    ['About', visibleLine(about.join(' '))],
    ['Tool', visibleLine(toolName)],
  ];
};

const argumentsText = (args: Judged['arguments'], note = ''): string =>
  args === null
    ? 'Arguments not recorded'
    : `Arguments${note}\n${indented(pretty(args).split('\n').map(visibleLine).join('\n'))}`;

/** What there is to judge a waiting call by. */
export const approvalText = (approval: PendingApproval): string => {
  const who = facts([
    ...callFacts(approval),
    ['Agent', approval.agentName],
    ['Session', approval.sessionId],
    ['Run', approval.runId],
    ['Asked', `${formatTime(approval.createdAt)}${approval.inBand ? ', also in the answer of the run' : ''}`],
    ['Expires', approval.expiresAt === null ? 'never' : formatTime(approval.expiresAt)],
  ]);
  return safeText(`${argumentsText(approval.arguments)}\n\n${who}`);
};

/** The same for a call that waits in the session of its run. */
export const waitingCallText = (call: WaitingCall): string => {
  const note = call.truncated === true ? ' (cut where recordings are)' : '';
  return safeText(`${facts(callFacts(call))}\n${argumentsText(call.arguments, note)}`);
};

/** A record as JSON. */
export const jsonText = (record: object): string => safeText(JSON.stringify(record, null, 2));

/** The record of a run and its scores as JSON. */
export const recordText = (run: object, scores: readonly RunScore[]): string =>
  jsonText(scores.length === 0 ? run : { ...run, scores });

/** Rows of the screen that are left for an overlay's text. */
export const overlayHeight = ({ rows }: Size): number => Math.max(1, rows - 3);

export const overlayRows = ({ lines }: Overlay, { columns }: Size): readonly string[] =>
  lines.flatMap((text) => wrapText(text, columns - 2));

/** Last row that may be at the top, so that the text fills the screen. */
export const lastTop = (overlay: Overlay, size: Size): number =>
  Math.max(0, overlayRows(overlay, size).length - overlayHeight(size));
