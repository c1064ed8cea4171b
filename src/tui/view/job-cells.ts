import type { JobRecord } from '../../features/jobs/jobs.schema.ts';
import { formatDuration, formatTime, joined, shortTime } from '../../text/format.ts';
import { progressOf, type ShownJob } from '../../text/job-line.ts';
import { progressCells } from '../../text/progress-bar.ts';
import { safeLine } from '../../text/text-width.ts';
import type { JobItem } from '../state/job-list.ts';
import { type Span, span, type Tone } from './line.ts';
import { tokensText } from './run-cells.ts';

type Mark = readonly [mark: string, tone: Tone];

const marks: Readonly<Record<JobRecord['status'], Mark>> = {
  Pending: ['○', 'dim'],
  Leased: ['◐', 'accent'],
  Running: ['●', 'accent'],
  Completed: ['✓', 'good'],
  Failed: ['✗', 'bad'],
  Canceled: ['■', 'warn'],
};

const statusOf = (status: JobRecord['status'] | JobItem['status']): Span => {
  const [mark, tone] = marks[status];
  return span(`${mark} ${status.toLowerCase()}`, tone);
};

export const jobStatusSpan = ({ status }: Pick<JobRecord, 'status'>): Span => statusOf(status);

export const itemStatusSpan = ({ status }: JobItem): Span => statusOf(status);

/** A bar, and how many items have ended; empty for a job without items. */
export const itemsText = (job: ShownJob, barCells: number): string => {
  const progress = progressOf(job);
  if (progress.total === 0) return '';
  const { done, failed, left } = progressCells(progress, barCells);
  return `${done}${failed}${left} ${tokensText(progress.done + progress.failed)}/${tokensText(progress.total)}`;
};

export const itemsTone = ({ failedItems }: ShownJob): Tone => (failedItems > 0 ? 'bad' : 'good');

/** From the first lease to the end, or so far. */
export const jobTimeText = ({ startedAt, completedAt }: ShownJob, now: number): string => {
  if (startedAt === null) return '';
  if (completedAt !== null) return formatDuration(Date.parse(completedAt) - Date.parse(startedAt));
  // Whole seconds: a number that changes once a second can be read.
  const seconds = Math.floor(Math.max(0, now - Date.parse(startedAt)) / 1000);
  return seconds === 0 ? '0s' : formatDuration(seconds * 1000);
};

/** Its kind, lane, place and time, for the row below a list and the head of one job. */
export const aboutJob = (job: ShownJob, now: number): string =>
  safeLine(
    joined([
      job.handlerKey,
      `lane ${job.lane}`,
      `queued ${shortTime(formatTime(job.createdAt), new Date(now))}`,
      job.leaseOwner === null ? '' : `worker ${job.leaseOwner}`,
    ]),
  );
