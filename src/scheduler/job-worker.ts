import {
  JobCanceledError,
  type JobHandler,
  type JobQueue,
  type JobResult,
  LeaseLostError,
  type QueuedJob,
} from './job-queue.ts';
import { retryDelayMs } from './retry-delay.ts';

export interface JobWorkerOptions {
  readonly owner: string;
  readonly maxConcurrentJobs: number;
  readonly pollIntervalMs: number;
  readonly leaseDurationMs: number;
  /** Empty: every lane. */
  readonly lanes: readonly string[];
  readonly maxConcurrentJobsPerLane: Readonly<Record<string, number>>;
}

export interface JobWorker {
  start(): void;
  /** Looks for jobs now; called when one is queued in this process. Nothing happens before the start. */
  wake(): void;
  /** Takes no more jobs; those in progress go on. */
  stop(): void;
  /** Stops, and resolves when no job is in progress. */
  idle(): Promise<void>;
  /** Stops the jobs in progress that somebody asked to stop; looked for at every poll, too. */
  heedCancels(): Promise<void>;
  readonly activeJobs: number;
}

interface WorkerPorts {
  readonly queue: JobQueue;
  readonly handlers: Readonly<Record<string, JobHandler>>;
  /** Called for a job whose last attempt was lost, after it has failed as `lease-expired`. */
  readonly lost?: (job: QueuedJob) => Promise<void>;
  readonly now: () => number;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

/** Takes due jobs up to its limits and renews their leases at half their duration. */
export const createJobWorker = (ports: WorkerPorts, options: JobWorkerOptions): JobWorker => {
  const { queue, handlers, now, log } = ports;
  const running = new Map<string, { job: QueuedJob; controller: AbortController; done: Promise<void> }>();
  let poll: NodeJS.Timeout | null = null;
  let renewal: NodeJS.Timeout | null = null;
  let looking = false;
  let lookAgain = false;
  // Before its start a worker takes nothing: a process that only queues jobs has one too.
  let takes = false;

  const fullLanes = (): string[] =>
    Object.entries(options.maxConcurrentJobsPerLane)
      .filter(([lane, limit]) => [...running.values()].filter((entry) => entry.job.lane === lane).length >= limit)
      .map(([lane]) => lane);

  const fail = (job: QueuedJob, result: Extract<JobResult, { status: 'Failed' }>): Promise<void> => {
    if (result.final === true || job.attempt >= job.maxAttempts)
      return queue.fail(options.owner, job.id, now(), result.code, result.message);
    return queue.retry(options.owner, job.id, now() + (result.retryAfterMs ?? retryDelayMs(job.attempt)));
  };

  const settle = async (job: QueuedJob, result: JobResult): Promise<void> => {
    if (result.status === 'Requeued') return;
    if (result.status === 'Completed') return queue.complete(options.owner, job.id, now());
    if (result.status === 'Canceled') return queue.cancel(options.owner, job.id, now());
    if (result.status === 'Released') {
      await queue.release(options.owner, job.id, result.afterMs === undefined ? null : now() + result.afterMs);
      return result.released?.();
    }
    return fail(job, result);
  };

  const execute = async (job: QueuedJob, signal: AbortSignal): Promise<void> => {
    const handler = handlers[job.handlerKey];
    try {
      if (handler === undefined) {
        const message = `No handler is registered for "${job.handlerKey}".`;
        await queue.fail(options.owner, job.id, now(), 'unknown-handler-key', message);
        return;
      }
      await queue.begin(options.owner, job.id);
      await settle(job, await handler(job, signal));
    } catch (error) {
      log.error({ jobId: job.id, tenantId: job.tenantId, error }, 'A job failed because of an internal error');
      const message = 'The job failed because of an internal error.';
      await fail(job, { status: 'Failed', code: 'internal', message })
        // The store is what failed; the next start finds the lease and closes the job.
        .catch(() => undefined);
    }
  };

  const take = (job: QueuedJob): void => {
    const controller = new AbortController();
    if (job.cancel !== null) controller.abort(new JobCanceledError(job.cancel.by));
    const done = execute(job, controller.signal).finally(() => {
      running.delete(job.id);
      wake();
    });
    running.set(job.id, { job, controller, done });
  };

  // A lane at its limit must not take the places of other lanes, so limited lanes are claimed one job at a time.
  const claimLimit = (): number => {
    const free = options.maxConcurrentJobs - running.size;
    return Object.keys(options.maxConcurrentJobsPerLane).length > 0 ? Math.min(free, 1) : free;
  };

  const look = async (): Promise<void> => {
    for (let limit = claimLimit(); limit > 0 && takes; limit = claimLimit()) {
      const lanes = { only: options.lanes.length > 0 ? options.lanes : null, full: fullLanes() };
      const jobs = await queue.claim(options.owner, now(), now() + options.leaseDurationMs, limit, lanes);
      for (const job of jobs) take(job);
      if (jobs.length < limit) return;
    }
  };

  function wake(): void {
    if (!takes) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    look()
      .catch((error: unknown) => log.error({ error }, 'The job queue could not be read'))
      .finally(() => {
        looking = false;
        if (!lookAgain) return;
        lookAgain = false;
        wake();
      });
  }

  /** Jobs that nobody will take again, because their last attempt was lost. */
  const expireLost = async (): Promise<void> => {
    if (!takes) return;
    for (const job of await queue.expire(options.owner, now())) {
      log.error({ jobId: job.id, tenantId: job.tenantId }, 'The last attempt of a job was lost');
      await ports.lost?.(job);
    }
  };

  const renewLeases = async (): Promise<void> => {
    const held = new Set(await queue.renew(options.owner, [...running.keys()], now() + options.leaseDurationMs));
    for (const [id, entry] of running) if (!held.has(id)) entry.controller.abort(new LeaseLostError());
  };

  const heedCancels = async (): Promise<void> => {
    for (const { id, by } of await queue.cancelRequests(options.owner, [...running.keys()]))
      running.get(id)?.controller.abort(new JobCanceledError(by));
  };

  const stop = (): void => {
    takes = false;
    if (poll !== null) clearInterval(poll);
  };

  return {
    get activeJobs() {
      return running.size;
    },
    start() {
      takes = true;
      poll = setInterval(() => {
        wake();
        heedCancels().catch((error: unknown) => log.error({ error }, 'Canceled jobs could not be looked for'));
        expireLost().catch((error: unknown) => log.error({ error }, 'Lost jobs could not be looked for'));
      }, options.pollIntervalMs);
      poll.unref();
      renewal = setInterval(() => {
        renewLeases().catch((error: unknown) => log.error({ error }, 'Job leases could not be renewed'));
      }, options.leaseDurationMs / 2);
      renewal.unref();
      wake();
    },
    wake,
    stop,
    heedCancels,
    async idle() {
      stop();
      while (running.size > 0) await Promise.all([...running.values()].map((entry) => entry.done));
      if (renewal !== null) clearInterval(renewal);
    },
  };
};
