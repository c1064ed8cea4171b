import type { RunRecord } from '../../features/runs/runs.schema.ts';
import type { RunScore } from '../../features/scores/scores.schema.ts';
import { formatCost, formatDuration, formatTime, shortTime } from '../../text/format.ts';
import { safeLine } from '../../text/text-width.ts';
import { type ShownStatus, shownStatus, statusLabel } from '../state/run-status.ts';
import { type Span, span, type Tone } from './line.ts';

const marks: Readonly<Record<ShownStatus, readonly [mark: string, tone: Tone]>> = {
  Queued: ['○', 'dim'],
  Running: ['●', 'accent'],
  Completed: ['✓', 'good'],
  Failed: ['✗', 'bad'],
  Canceled: ['■', 'warn'],
  AwaitingInput: ['?', 'warn'],
  AwaitingApproval: ['?', 'warn'],
  Continued: ['→', 'dim'],
};

/** `✓ completed`: the mark says it where there are no colours. */
export const statusSpan = (run: Pick<RunRecord, 'status' | 'continuedBy' | 'warnings'>): Span => {
  // It is not shown as a plain completed run.
  if (run.status === 'Completed' && run.warnings !== undefined) return span('! part recorded', 'warn');
  const status = shownStatus(run);
  const [mark, tone] = marks[status];
  return span(`${mark} ${statusLabel(status)}`, tone);
};

/** The model, the start, what else there is to say, the session and the labels of a run. */
export const aboutTexts = (run: RunRecord, now: number, width: number, more = ''): readonly string[] => [
  [run.modelProvider, run.modelId].filter((part) => part !== null).join('/'),
  `started ${shortTime(formatTime(run.startedAt ?? run.createdAt), new Date(now))}`,
  more,
  run.sessionId === null ? '' : `session ${shownId(run.sessionId, width)}`,
  ...Object.entries(run.labels ?? {}).map(([key, value]) => `${key}:${value}`),
];

/** `12s`, `3m`, `5h`, `9d`: how long ago something was, in few cells. */
export const ageText = (time: string, now: number): string => {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
};

/** How long a run took, or takes so far. */
export const durationText = (run: RunRecord, now: number): string => {
  if (run.durationMs !== null) return formatDuration(run.durationMs);
  if (run.status !== 'Running' || run.startedAt === null) return '';
  // Whole seconds: a number that changes once a second can be read.
  const seconds = Math.floor(Math.max(0, now - Date.parse(run.startedAt)) / 1000);
  return seconds === 0 ? '0s' : formatDuration(seconds * 1000);
};

const thousands = new Intl.NumberFormat('en-US');

export const tokensText = (tokens: number | null | undefined): string =>
  tokens === null || tokens === undefined ? '' : thousands.format(tokens);

export const costText = (cost: number | null | undefined, currency: string | null | undefined): string =>
  cost === null || cost === undefined ? '' : formatCost(cost, currency);

/** From here on ids are shown whole. */
const wholeIdsFrom = 80;
const longestId = 16;

/** An id; on a narrow screen the end of a long one, which is what ids differ in. */
export const shownId = (id: string, width: number): string => {
  const text = safeLine(id);
  return width >= wholeIdsFrom || text.length <= longestId ? text : `…${text.slice(-6)}`;
};

/** `4 of 5 stars`, `good`, `87.5`, or the category. */
export const scoreText = ({ kind, value, textValue }: Pick<RunScore, 'kind' | 'value' | 'textValue'>): string => {
  if (value === null) return textValue ?? '';
  if (kind === 'Stars') return `${value} of 5 stars`;
  if (kind === 'Binary') return value === 1 ? 'good' : 'bad';
  return String(value);
};
