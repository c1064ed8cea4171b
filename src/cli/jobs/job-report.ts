import type { FollowedJob } from '../../client/follow-jobs.ts';
import { errorTable, isErrorCode } from '../../contract/errors.ts';
import { formatTime, joined } from '../../text/format.ts';
import { hasEnded, jobText, progressOf, type ShownJob } from '../../text/job-line.ts';
import { progressCells } from '../../text/progress-bar.ts';
import type { Style, StyleName } from '../../text/style.ts';
import { fitText, safeLine } from '../../text/text-width.ts';

/** A job that did its work, in which some items have failed. */
export const failedItemsExitCode = 10;
// As for errors that the table does not have.
const unknownExitCode = 1;

/** What the end of a job means for a script; 0 while it goes on. */
export const jobExitCode = ({ status, errorCode, failedItems }: ShownJob): number => {
  if (status === 'Canceled') return errorTable['run-canceled'].exit;
  if (status === 'Failed') return isErrorCode(errorCode) ? errorTable[errorCode].exit : unknownExitCode;
  return status === 'Completed' && failedItems > 0 ? failedItemsExitCode : 0;
};

const styles: Readonly<Record<ShownJob['status'], StyleName>> = {
  Pending: 'dim',
  Leased: 'cyan',
  Running: 'cyan',
  Completed: 'green',
  Failed: 'red',
  Canceled: 'yellow',
};

const timeOf = (now: number): string => formatTime(new Date(now).toISOString()).slice(-8);

/** `acp.agent-batch reviewer`: what a job does. */
const nameOf = ({ handlerKey, targetName }: ShownJob): string => safeLine(`${handlerKey} ${targetName}`);

/** `14:05:09  Running  512 of 1,000 items` with the job's name and the end of its id where several are shown. */
export const jobLine = (job: ShownJob, named: boolean, now: number, style: Style): string => {
  const name = named ? `${style.cyan(nameOf(job))} ${style.dim(job.id.slice(-6))}  ` : '';
  const text = safeLine(jobText(job, now));
  const status = style[styles[job.status]](job.status);
  return `${style.dim(timeOf(now))}  ${name}${status}${text === '' ? '' : `  ${text}`}\n`;
};

const barCells = 24;

/** The one line that stands for a job while it is on its way: a bar where it has items. */
export const barLine = (job: ShownJob, now: number): string => {
  const progress = progressOf(job);
  const cells = progressCells(progress, barCells);
  const bar = progress.total === 0 ? '' : `${cells.done}${cells.failed}${cells.left} `;
  const elapsed = job.startedAt === null ? '' : `${Math.max(0, Math.floor((now - Date.parse(job.startedAt)) / 1000))}s`;
  return `${bar}${joined([job.status, jobText(job, now), elapsed])}`;
};

/** What all jobs together are at, while several are followed. */
export const sumLine = (jobs: readonly ShownJob[]): string => {
  const open = jobs.filter((job) => !hasEnded(job));
  const waiting = open.filter(({ status }) => status === 'Pending').length;
  const sum = (of: (job: ShownJob) => number): number => open.reduce((total, job) => total + of(job), 0);
  const progress = {
    done: sum(({ doneItems }) => doneItems),
    failed: sum(({ failedItems }) => failedItems),
    total: sum(({ totalItems }) => totalItems),
  };
  const cells = progressCells(progress, barCells);
  const bar = progress.total === 0 ? '' : `${cells.done}${cells.failed}${cells.left} `;
  return `${bar}${joined([`${open.length - waiting} at work`, `${waiting} waiting`])}`;
};

const shownFailures = 10;
const reasonWidth = 160;

/** Why items have failed, a line each for the first ones; and where the rest is. */
export const failureLines = ({ job, items }: FollowedJob): string[] => {
  const failed = items.filter(({ status }) => status === 'Failed');
  const lines = failed
    .slice(0, shownFailures)
    .map(({ seq, error }) => `item ${seq}: ${fitText(safeLine(error ?? 'failed'), reasonWidth)}`);
  const more = failed.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more: acp jobs get ${job.id}`] : lines;
};
