import type { Clock } from '../core/clock.ts';
import {
  type JobHandler,
  type JobQueue,
  type JobResult,
  type JobWait,
  LeaseLostError,
  type QueuedJob,
  waitFor,
} from './job-queue.ts';
import type { JobTelemetry, JobWatch } from './job-telemetry.ts';
import { retryDelayMs } from './retry-delay.ts';

export interface AttemptPorts {
  readonly queue: JobQueue;
  readonly handlers: Readonly<Record<string, JobHandler>>;
  readonly telemetry: Pick<JobTelemetry, 'began'>;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly log: {
    warn(fields: Readonly<Record<string, unknown>>, message: string): void;
    error(fields: Readonly<Record<string, unknown>>, message: string): void;
  };
  /** Called when a job is back in line; from when on it is due, epoch milliseconds, or null where that is not known here. */
  gaveBack(job: QueuedJob, dueAt: number | null): void;
  /** Aborted when the process ends: what the store does not take then is left to the lease. */
  ending(): AbortSignal;
}

// The store has just taken the job back, so it may be this process that was away: it stood still, and what it had read is too old.
const soonMs = 1000;
// After so long without a job that had to wait, the next ones may be the first of another trouble.
const quietMs = 30_000;
// Often enough to be the first when the store is back, seldom enough to be nothing to a store in trouble.
const tellAgainMs = 1000;

/** One attempt at a job, from the first word to the store to the last. Never rejects. */
export const createJobAttempts = ({ queue, handlers, telemetry, clock, log, gaveBack, ending }: AttemptPorts) => {
  const { now } = clock;
  /** When a job last had to wait, and since when some had to, epoch milliseconds. */
  let [waitedAt, troubleSince] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];

  /** The jobs of one moment come back soon, once; in a trouble that lasts they do not ask every second. */
  const waitMs = (isSpent: boolean): number => {
    const at = now();
    if (Math.abs(at - waitedAt) > quietMs) troubleSince = at;
    waitedAt = at;
    return !isSpent && Math.abs(at - troubleSince) < soonMs ? soonMs : retryDelayMs(1);
  };

  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      const signal = ending();
      const over = (): void => {
        signal.removeEventListener('abort', over);
        timer.stop();
        resolve();
      };
      const timer = clock.after(tellAgainMs, over).unref();
      signal.addEventListener('abort', over, { once: true });
    });

  /**
   * What became of an attempt, until the store has it: for all others the job would be one whose process is gone, which
   * costs it an attempt. A lease that was lost meanwhile makes it a write without effect.
   */
  const told = async <T>(write: () => Promise<T>): Promise<T> => {
    for (;;)
      try {
        return await write();
      } catch (error) {
        if (waitFor(error) === null || ending().aborted) throw error;
        await pause();
      }
  };

  /** Puts a job back in line, due so long after the store has taken that; null: as it was. */
  const backIn = async <D extends number | null>(
    job: QueuedJob,
    afterMs: D,
    write: (dueAt: D) => Promise<void>,
  ): Promise<void> => {
    const dueAt = await told(async () => {
      const at = (afterMs === null ? null : now() + afterMs) as D;
      await write(at);
      return at;
    });
    gaveBack(job, dueAt);
  };

  const fail = async (
    job: QueuedJob,
    watch: JobWatch,
    result: Extract<JobResult, { status: 'Failed' }>,
  ): Promise<void> => {
    const isFinal = result.final === true || job.attempt >= job.maxAttempts;
    if (isFinal) await told(() => queue.fail(job, now(), result.code, result.message));
    else await backIn(job, result.retryAfterMs ?? retryDelayMs(job.attempt), (dueAt) => queue.retry(job, dueAt));
    watch.ended('Failed', isFinal, result.code);
  };

  const wait = async (job: QueuedJob, watch: JobWatch, { code, ...why }: JobWait): Promise<void> => {
    log.warn({ jobId: job.id, tenantId: job.tenantId, code }, 'A job waits, because the store is away');
    // Not doubled: how often it has waited says nothing of how long the store stays away.
    await backIn(job, waitMs(why.isSpent), (dueAt) => queue.postpone(job, dueAt, { code, ...why }));
    watch.released();
  };

  const settle = async (job: QueuedJob, watch: JobWatch, result: JobResult): Promise<void> => {
    if (result.status === 'Failed') return fail(job, watch, result);
    if (result.status === 'Waiting') {
      await wait(job, watch, result.wait);
      return result.released?.();
    }
    if (result.status === 'Released') {
      await backIn(job, result.afterMs ?? null, (dueAt) => queue.release(job, dueAt));
      watch.released();
      return result.released?.();
    }
    if (result.status === 'Requeued') {
      // Put back in line by its handler, after an attempt that failed; at once when this process ends.
      gaveBack(job, null);
      return watch.ended('Failed', false, 'requeued');
    }
    if (result.status === 'Canceled') await told(() => queue.cancel(job, now()));
    else if (result.isStored !== true) await told(() => queue.complete(job, now()));
    watch.ended(result.status, true, null);
  };

  /** Null: there is nothing to tell the store, since another worker has the job, or its lease has lapsed. */
  const resultOf = async (job: QueuedJob, watch: JobWatch, signal: AbortSignal): Promise<JobResult | null> => {
    const handler = handlers[job.handlerKey];
    if (handler === undefined) {
      const message = `No handler is registered for "${job.handlerKey}".`;
      return { status: 'Failed', code: 'unknown-handler-key', message, final: true };
    }
    try {
      if (handler.begins !== true && !(await queue.begin(job))) return null;
      return await handler(watch.trace === null ? job : { ...job, trace: watch.trace }, signal);
    } catch (error) {
      if (error instanceof LeaseLostError) {
        log.warn(
          { jobId: job.id, tenantId: job.tenantId, error },
          'A worker lost the lease of a job and leaves it to others',
        );
        return null;
      }
      const wait = waitFor(error);
      if (wait !== null) return { status: 'Waiting', wait };
      log.error({ jobId: job.id, tenantId: job.tenantId, error }, 'A job failed because of an internal error');
      return { status: 'Failed', code: 'internal', message: 'The job failed because of an internal error.' };
    }
  };

  return async (job: QueuedJob, signal: AbortSignal): Promise<void> => {
    const watch = telemetry.began(job);
    try {
      const result = await resultOf(job, watch, signal);
      if (result === null) watch.released();
      else await settle(job, watch, result);
    } catch (error) {
      // The lease lapses, and whoever finds it takes the job or ends it.
      log.error({ jobId: job.id, tenantId: job.tenantId, error }, 'How a job ended could not be stored');
    }
  };
};
