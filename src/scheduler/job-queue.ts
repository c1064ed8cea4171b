import { AcpError } from '../contract/errors.ts';
import type { TraceParent } from '../core/telemetry/trace-context.ts';

export interface QueuedJob {
  readonly id: string;
  readonly tenantId: string;
  readonly handlerKey: string;
  readonly lane: string;
  readonly targetName: string;
  readonly payload: unknown;
  /** Who holds the job's lease. */
  readonly leaseOwner: string;
  /** This attempt, from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Set when somebody asked an earlier worker to stop it. */
  readonly cancel: { readonly by: string | null } | null;
  /** From when it was due until this lease, in milliseconds; null: not its first one. */
  readonly waitedMs: number | null;
  /** Only so many of its kind are at work at once: the end of an attempt may let another one in. */
  readonly needsPlace?: boolean;
  /** Span of this attempt, for what the handler does; absent where no spans are exported. */
  readonly trace?: TraceParent;
}

/** One attempt at a job, as its worker has it: every write that the worker makes of the job names all three. */
export type JobLease = Pick<QueuedJob, 'id' | 'leaseOwner' | 'attempt'>;

/** The same with how many attempts it has, which a wait may add to. */
export type WaitingJob = JobLease & Pick<QueuedJob, 'maxAttempts'>;

/** Which jobs a worker may take now. */
export interface JobChoice {
  /** Its own lanes; null: every lane. */
  readonly only: readonly string[] | null;
  /** Lanes that have reached their limit. */
  readonly full: readonly string[];
  /** Jobs that still execute in the worker, whoever has their lease by now. */
  readonly except: readonly string[];
  /**
   * Null: all of them, and those whose lease has lapsed. Else only what may have become due since the last claim, the
   * earliest of it at this time (epoch milliseconds): a store that need not look at all again does not.
   */
  readonly dueSince: number | null;
}

/** What a worker needs of the store. Times are epoch milliseconds; writes of a lease that was lost change nothing. */
export interface JobQueue {
  /** Takes due jobs atomically, oldest first, then those whose lease lapsed and that have attempts left. */
  claim(
    owner: string,
    now: number,
    leaseUntil: number,
    limit: number,
    choice: JobChoice,
  ): Promise<readonly QueuedJob[]>;
  /**
   * Ends the jobs whose lease lapsed in their last attempt, as `lease-expired`; returns the jobs that it has ended. `owners`:
   * only jobs of these workers.
   */
  expire(now: number, except: readonly string[], owners?: readonly string[]): Promise<readonly QueuedJob[]>;
  /** Extends the leases of one worker and returns the jobs that are still held. */
  renew(leases: readonly JobLease[], leaseUntil: number): Promise<readonly string[]>;
  /** Those of one worker's jobs that somebody asked to stop, and who did. */
  cancelRequests(leases: readonly JobLease[]): Promise<readonly { readonly id: string; readonly by: string | null }[]>;
  /** False: the lease was lost before the work began. */
  begin(lease: JobLease): Promise<boolean>;
  complete(lease: JobLease, now: number): Promise<void>;
  fail(lease: JobLease, now: number, code: string, message: string): Promise<void>;
  /** Gives back a job whose attempt failed, for another one later. */
  retry(lease: JobLease, scheduledFor: number): Promise<void>;
  cancel(lease: JobLease, now: number): Promise<void>;
  /** Gives back a job whose work has not begun: the attempt does not count. Null: it stays due. */
  release(lease: JobLease, scheduledFor: number | null): Promise<void>;
  /** The same for one that waits for the store, which its row says until it is taken again. */
  postpone(job: WaitingJob, scheduledFor: number, wait: JobWait): Promise<void>;
}

/** Why a job waits of which nothing has failed. */
export interface JobWait {
  /** A code of the service's errors. */
  readonly code: string;
  readonly message: string;
  /**
   * What the attempt has sent to the store may still arrive there. So the next one is another one, by whose number it is
   * told apart, and the job has one more.
   */
  readonly isSpent: boolean;
}

/** The wait of a job whose error says that the store is away, or cannot say what the job has to know; null: it failed. */
export const waitFor = (error: unknown): JobWait | null =>
  error instanceof AcpError && error.code === 'store-unavailable'
    ? { code: error.code, message: error.message, isSpent: false }
    : null;

export type JobResult =
  | {
      readonly status: 'Completed';
      /** True: the handler has written the end of the job, in the unit of what the job did. */
      readonly isStored?: true;
    }
  | { readonly status: 'Canceled' }
  /** Not begun, because the process ends, or because it is another one's turn for so long. */
  | {
      readonly status: 'Released';
      readonly afterMs?: number;
      /** Called once the job is back in line. */
      readonly released?: () => void;
    }
  /** Not begun, because the store is away: it goes back in line, and has as many attempts as before. */
  | { readonly status: 'Waiting'; readonly wait: JobWait; readonly released?: () => void }
  /** The handler has put the job back in line itself. */
  | { readonly status: 'Requeued' }
  | {
      readonly status: 'Failed';
      readonly code: string;
      readonly message: string;
      /** No further attempt, whatever is left. */
      readonly final?: boolean;
      /** Until the next attempt; default: doubling from 10 s. */
      readonly retryAfterMs?: number;
    };

/** Why a handler's signal is aborted: another worker has the job. */
export class LeaseLostError extends Error {
  constructor() {
    super('The lease of the job was lost.');
    this.name = 'LeaseLostError';
  }
}

/** Why a handler's signal is aborted: somebody canceled the job. */
export class JobCanceledError extends Error {
  readonly by: string | null;

  constructor(by: string | null) {
    super('The job was canceled.');
    this.name = 'JobCanceledError';
    this.by = by;
  }
}

/**
 * Runs one attempt. A rejection counts as a failed attempt with an internal error, unless it says that the store is away:
 * then the job waits. One with `LeaseLostError` leaves the job to whoever has it, or finds that its lease has lapsed.
 */
export interface JobHandler {
  (job: QueuedJob, signal: AbortSignal): Promise<JobResult>;
  /** It says by itself that the job is at work, together with what it does first. */
  readonly begins?: true;
}
