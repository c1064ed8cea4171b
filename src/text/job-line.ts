import type { JobRecord } from '../features/jobs/jobs.schema.ts';
import { formatDuration, formatTime, joined, shortTime } from './format.ts';
import { type Progress, progressText } from './progress-bar.ts';

/** What is shown of a job, without what it was given. */
export type ShownJob = Omit<JobRecord, 'payload'>;

const endings: ReadonlySet<string> = new Set(['Completed', 'Failed', 'Canceled']);

/** True once a job has ended; it changes no more. */
export const hasEnded = ({ status }: Pick<JobRecord, 'status'>): boolean => endings.has(status);

export const progressOf = ({ doneItems, failedItems, totalItems }: ShownJob): Progress => ({
  done: doneItems,
  failed: failedItems,
  total: totalItems,
});

/** What a job waits for: its time, or another attempt at it. */
const waitText = ({ status, attempt, maxAttempts, scheduledFor }: ShownJob, now: number): string => {
  if (status !== 'Pending') return '';
  const again = attempt === 0 ? '' : `tried ${attempt} of ${maxAttempts} times`;
  const from =
    Date.parse(scheduledFor) <= now ? '' : `not before ${shortTime(formatTime(scheduledFor), new Date(now))}`;
  return joined([again, from], ', ');
};

/** Which attempt it is, where there was one before. */
const attemptText = ({ status, attempt, maxAttempts }: ShownJob): string =>
  attempt > 1 && status !== 'Pending' ? `attempt ${attempt} of ${maxAttempts}` : '';

/** From the first lease to the end. */
const tookText = ({ startedAt, completedAt }: ShownJob): string =>
  startedAt === null || completedAt === null ? '' : formatDuration(Date.parse(completedAt) - Date.parse(startedAt));

const errorText = ({ errorCode, errorMessage }: ShownJob): string =>
  joined([errorCode ?? '', errorMessage ?? ''], ': ');

/** What there is to say of a job beside its status: items, attempts, what it waits for, how it ended. Safe only after `safeLine`. */
export const jobText = (job: ShownJob, now: number): string =>
  joined([progressText(progressOf(job)), attemptText(job), waitText(job, now), tookText(job), errorText(job)]);
