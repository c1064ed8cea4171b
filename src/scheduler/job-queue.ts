export interface QueuedJob {
  readonly id: string;
  readonly tenantId: string;
  readonly handlerKey: string;
  readonly lane: string;
  readonly targetName: string;
  readonly payload: unknown;
  /** This attempt, from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
}

/** Which lanes a worker may take from now: its own, and those that have reached their limit. */
export interface LaneChoice {
  readonly only: readonly string[] | null;
  readonly full: readonly string[];
}

/** What a worker needs of the store. Times are epoch milliseconds; writes of a lost lease change nothing. */
export interface JobQueue {
  /** Takes due jobs atomically, oldest first. */
  claim(
    owner: string,
    now: number,
    leaseUntil: number,
    limit: number,
    lanes: LaneChoice,
  ): Promise<readonly QueuedJob[]>;
  /** Extends the leases and returns the jobs that are still held. */
  renew(owner: string, ids: readonly string[], leaseUntil: number): Promise<readonly string[]>;
  begin(owner: string, id: string): Promise<void>;
  complete(owner: string, id: string, now: number): Promise<void>;
  fail(owner: string, id: string, now: number, code: string, message: string): Promise<void>;
  cancel(owner: string, id: string, now: number): Promise<void>;
  /** Gives back a job whose work has not begun: the attempt does not count. */
  release(owner: string, id: string): Promise<void>;
}

export type JobResult =
  | { readonly status: 'Completed' }
  | { readonly status: 'Canceled' }
  /** Not begun, because the process ends; another one takes it. */
  | { readonly status: 'Released' }
  | { readonly status: 'Failed'; readonly code: string; readonly message: string };

/** Runs one attempt. A rejection counts as a failed attempt with an internal error. */
export type JobHandler = (job: QueuedJob, signal: AbortSignal) => Promise<JobResult>;
