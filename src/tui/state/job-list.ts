import { isDeepStrictEqual } from 'node:util';
import { type JobDetailResponse, type JobRecord, jobStatuses } from '../../features/jobs/jobs.schema.ts';
import type { ShownJob } from '../../text/job-line.ts';
import type { Choice } from './choice.ts';

export type JobItem = JobDetailResponse['items'][number];
/** Jobs of one status, or all. */
export type JobFilter = JobRecord['status'] | null;

/** The newest jobs of a filter. */
export interface JobList extends Choice<ShownJob> {
  readonly filter: JobFilter;
  readonly loaded: boolean;
  /** False where there are older ones than those here. */
  readonly complete: boolean;
  /** Why the list cannot be read, such as a missing scope; empty when it can. */
  readonly refusal: string;
}

export interface JobPage {
  readonly filter: JobFilter;
  readonly rows: readonly ShownJob[];
  readonly complete: boolean;
}

/** A job that was opened, with its items in their order. */
export interface OpenJob extends Choice<JobItem> {
  readonly job: ShownJob;
  readonly loaded: boolean;
}

export const emptyJobs = (filter: JobFilter = null): JobList => ({
  filter,
  rows: [],
  loaded: false,
  complete: false,
  refusal: '',
  selectedId: null,
});

/** Takes in a page; one of another filter is too late, and one that says nothing new changes nothing. */
export const receiveJobs = (list: JobList, { filter, rows, complete }: JobPage): JobList => {
  if (filter !== list.filter) return list;
  if (list.loaded && list.refusal === '' && list.complete === complete && isDeepStrictEqual(rows, list.rows))
    return list;
  return { ...list, rows, complete, loaded: true, refusal: '' };
};

const filters: readonly JobFilter[] = [null, ...jobStatuses];

export const nextJobFilter = (filter: JobFilter): JobFilter =>
  filters[(filters.indexOf(filter) + 1) % filters.length] ?? null;

export const openJob = (job: ShownJob): OpenJob => ({ job, rows: [], loaded: false, selectedId: null });

/** The key of the one kind of job that is a run itself, and has its id. */
const queuedRunKey = 'acp.agent-run';

/** The run that a job is; null where it is none. */
export const runOfJob = ({ handlerKey, id }: ShownJob): string | null => (handlerKey === queuedRunKey ? id : null);
