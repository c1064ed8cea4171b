import { ChurningMap } from '../core/churning-map.ts';
import type { Clock, Timer } from '../core/clock.ts';
import { createJobAttempts } from './job-attempt.ts';
import { JobCanceledError, type JobHandler, type JobQueue, LeaseLostError, type QueuedJob } from './job-queue.ts';
import type { JobTelemetry } from './job-telemetry.ts';

export interface JobWorkerOptions {
  readonly owner: string;
  readonly maxConcurrentJobs: number;
  readonly pollIntervalMs: number;
  readonly leaseDurationMs: number;
  /** Empty: every lane. */
  readonly lanes: readonly string[];
  readonly maxConcurrentJobsPerLane: Readonly<Record<string, number>>;
}

const pollsOfGrace = 2;

// Before every job: what goes back in line keeps the time at which it was due.
const longAgo = 0;

interface Held {
  readonly job: QueuedJob;
  readonly controller: AbortController;
  readonly done: Promise<void>;
  leaseUntil: number;
  /** From when on somebody may take it once it does not execute here any more; null: since long ago. Infinite: nobody may. */
  freeSince: number | null;
}

export interface WorkerPorts {
  readonly queue: JobQueue;
  readonly handlers: Readonly<Record<string, JobHandler>>;
  /** Called for a job whose last attempt was lost, after it has failed as `lease-expired`. */
  readonly lost?: ((job: QueuedJob) => Promise<void>) | undefined;
  /** Places that jobs leave go to others. */
  readonly places?: { freed(jobId: string): Promise<void>; sweep(): Promise<void> } | undefined;
  /** Tells the workers of other processes that jobs are due, the earliest of them at this time. */
  tellOthers(dueAt: number): void;
  readonly telemetry: JobTelemetry;
  readonly clock: Clock;
  readonly log: {
    warn(fields: Readonly<Record<string, unknown>>, message: string): void;
    error(fields: Readonly<Record<string, unknown>>, message: string): void;
  };
}

/** Takes due jobs up to its limits and renews their leases at half their duration. Design: docs/design/jobs.md. */
export const createJobWorker = (ports: WorkerPorts, options: JobWorkerOptions) => {
  const { queue, telemetry, clock, log } = ports;
  const { now } = clock;
  const running = new ChurningMap<string, Held>();
  let poll: Timer | null = null;
  let renewal: Timer | null = null;
  let looking: Promise<void> | null = null;
  let looksSoon = false;
  let lookAgain = false;
  // Before its start a worker takes nothing: a process that only queues jobs has one too.
  let takes = false;
  /** From when on jobs may have become due since the last look; null: all are to be looked at. */
  let dueSince: number | null = null;
  /** From when on jobs of this process are due that others were not told of; null: there are none. */
  let queuedHere: number | null = null;
  /** When the store last answered a poll, and since when it has answered all of them. */
  let answeredAt = Number.NEGATIVE_INFINITY;
  let answersSince = Number.POSITIVE_INFINITY;
  // A job that this worker may not take is for others to hear of at once.
  const servesAll = options.lanes.length === 0 && Object.keys(options.maxConcurrentJobsPerLane).length === 0;

  const fullLanes = (): string[] =>
    Object.entries(options.maxConcurrentJobsPerLane)
      .filter(([lane, limit]) => [...running.values()].filter((entry) => entry.job.lane === lane).length >= limit)
      .map(([lane]) => lane);

  // After this long whoever lives has renewed a lease that lapsed while the store was away, or has given its job back.
  const graceMs = options.pollIntervalMs * pollsOfGrace;

  /** Aborted when nothing is waited for any more. */
  let ending = new AbortController();
  const execute = createJobAttempts({
    ...ports,
    gaveBack({ id }, dueAt) {
      const entry = running.get(id);
      if (entry !== undefined) entry.freeSince = dueAt;
      if (!takes) ports.tellOthers(longAgo);
    },
    ending: () => ending.signal,
  });

  const take = (job: QueuedJob, leaseUntil: number): void => {
    const controller = new AbortController();
    if (job.cancel !== null) controller.abort(new JobCanceledError(job.cancel.by));
    const freed = async (): Promise<void> => {
      if (job.needsPlace === true) await ports.places?.freed(job.id);
    };
    const done = execute(job, controller.signal)
      .then(freed)
      .finally(() => {
        running.delete(job.id);
        // While it was at work it was passed over, and may be free again since long ago.
        lookSoon(controller.signal.reason instanceof LeaseLostError ? null : entry.freeSince);
      });
    const entry: Held = { job, controller, done, leaseUntil, freeSince: Number.POSITIVE_INFINITY };
    running.set(job.id, entry);
  };

  // A lane at its limit must not take the places of other lanes, so limited lanes are claimed one job at a time.
  const claimLimit = (): number => {
    const free = options.maxConcurrentJobs - running.size;
    return Object.keys(options.maxConcurrentJobsPerLane).length > 0 ? Math.min(free, 1) : free;
  };

  const giveBack = async (jobs: readonly QueuedJob[]): Promise<void> => {
    await Promise.all(jobs.map((job) => queue.release(job, null)));
    if (jobs.length > 0) ports.tellOthers(longAgo);
  };

  /** True when it took all that it may take now, so that some may be left for others. */
  const look = async (): Promise<boolean> => {
    for (let limit = claimLimit(); limit > 0 && takes; limit = claimLimit()) {
      const only = options.lanes.length > 0 ? options.lanes : null;
      const choice = { only, full: fullLanes(), except: [...running.keys()], dueSince };
      dueSince = Number.POSITIVE_INFINITY;
      const leaseUntil = now() + options.leaseDurationMs;
      const jobs = await queue.claim(options.owner, now(), leaseUntil, limit, choice).catch((error: unknown) => {
        dueSince = null;
        throw error;
      });
      // The worker was stopped meanwhile: others may have them.
      if (!takes) await giveBack(jobs);
      else for (const job of jobs) take(job, leaseUntil);
      if (jobs.length < limit) return false;
    }
    return true;
  };

  /** Takes what became due at this time, or later; null: whatever is due. Nothing happens before the start. */
  const lookSince = (dueAt: number | null): void => {
    dueSince = dueAt === null || dueSince === null ? null : Math.min(dueAt, dueSince);
    if (!takes) return;
    if (looking !== null) {
      lookAgain = true;
      return;
    }
    const mayBeLeft = queuedHere;
    queuedHere = null;
    looking = look()
      .then((isFull) => {
        if (isFull && mayBeLeft !== null) ports.tellOthers(mayBeLeft);
      })
      .catch((error: unknown) => log.error({ error }, 'The job queue could not be read'))
      .finally(() => {
        looking = null;
        if (!lookAgain) return;
        lookAgain = false;
        lookSince(Number.POSITIVE_INFINITY);
      });
  };

  /** The same, once for all that end or come in this turn of the event loop: they shared a commit, and so do those that follow. */
  const lookSoon = (dueAt: number | null): void => {
    dueSince = dueAt === null || dueSince === null ? null : Math.min(dueAt, dueSince);
    if (looksSoon) return;
    looksSoon = true;
    setImmediate(() => {
      looksSoon = false;
      lookSince(Number.POSITIVE_INFINITY);
    });
  };

  /** Called when a job that is due at this time was put in line in this process: others hear of it where it is left to them. */
  const wake = (dueAt: number): void => {
    if (!takes || !servesAll) ports.tellOthers(dueAt);
    else queuedHere = Math.min(dueAt, queuedHere ?? dueAt);
    lookSoon(dueAt);
  };

  const failed = async (lost: readonly QueuedJob[]): Promise<void> => {
    for (const job of lost) {
      log.error({ jobId: job.id, tenantId: job.tenantId }, 'The last attempt of a job was lost');
      telemetry.lost(job);
      await ports.lost?.(job);
      // The sweep of this poll may have looked before the job had ended.
      if (job.needsPlace === true) await ports.places?.freed(job.id);
    }
  };

  /** Jobs that nobody will take again, because their last attempt was lost. */
  const expireLost = async (): Promise<void> => {
    if (!takes) return;
    const at = now();
    if (at - answeredAt > graceMs) answersSince = Number.POSITIVE_INFINITY;
    // Asked in any case: that it is answered says since when the store is there.
    const lapsed = await queue.expire(at - answersSince >= graceMs ? at : longAgo, [...running.keys()]);
    answeredAt = now();
    answersSince = Math.min(answersSince, answeredAt);
    await failed(lapsed);
  };

  const abortLost = (entries: readonly Held[]): void => {
    for (const { controller } of entries) controller.abort(new LeaseLostError());
  };

  const renewLeases = async (): Promise<void> => {
    const entries = [...running.values()];
    const leaseUntil = now() + options.leaseDurationMs;
    const leases = entries.map(({ job }) => job);
    try {
      const held = new Set(await queue.renew(leases, leaseUntil));
      for (const entry of entries) if (held.has(entry.job.id)) entry.leaseUntil = leaseUntil;
      abortLost(entries.filter(({ job }) => !held.has(job.id)));
    } catch (error) {
      // Whoever reaches the store may have taken those whose lease has ended.
      abortLost(entries.filter((entry) => entry.leaseUntil <= now()));
      throw error;
    }
  };
  const renew = (): Promise<void> =>
    renewLeases().catch((error: unknown) => log.error({ error }, 'Job leases could not be renewed'));

  /** Stops the jobs in progress that somebody asked to stop; looked for at every poll, too. */
  const heedCancels = async (): Promise<void> => {
    const leases = [...running.values()].map(({ job }) => job);
    for (const { id, by } of await queue.cancelRequests(leases))
      running.get(id)?.controller.abort(new JobCanceledError(by));
  };

  const heedCancelsSoon = (): Promise<void> =>
    heedCancels().catch((error: unknown) => log.error({ error }, 'Canceled jobs could not be looked for'));

  const sweepPlaces = async (): Promise<void> =>
    ports.places?.sweep().catch((error: unknown) => log.error({ error }, 'Places of jobs could not be looked for'));

  // The polls go on: whoever drains still looks for cancels, and keeps its leases.
  /** Takes no more jobs; those in progress go on. */
  const stop = (): void => {
    takes = false;
  };

  const notExpired = (error: unknown): void => log.error({ error }, 'Lost jobs could not be looked for');

  const onPoll = (): Promise<unknown> => {
    lookSince(null);
    return Promise.all([
      looking,
      [...running.values()].some((entry) => entry.leaseUntil <= now()) ? renew() : null,
      heedCancelsSoon(),
      sweepPlaces(),
      expireLost().catch(notExpired),
    ]);
  };

  return {
    get activeJobs(): number {
      return running.size;
    },
    start(): void {
      takes = true;
      ending = new AbortController();
      poll = clock.every(options.pollIntervalMs, onPoll);
      renewal = clock.every(options.leaseDurationMs / 2, renew);
      lookSince(null);
      void sweepPlaces();
    },
    wake,
    /** Called when other processes have told of due jobs; null: they may have, unheard. */
    told: lookSince,
    /** Called when another process was asked for the end of a job; null: some may have been, unheard. */
    toldToStop(id: string | null): void {
      if (id === null || running.get(id) !== undefined) void heedCancelsSoon();
    },
    /** Called when the leases of these workers were ended: their jobs are taken, or fail, before the next poll. */
    leasesEnded(owners: readonly string[]): void {
      if (!takes) return;
      lookSince(null);
      // Without the grace of polls: each of these workers had the time to write a heartbeat.
      void queue
        .expire(now(), [...running.keys()], owners)
        .then(failed)
        .catch(notExpired);
    },
    /** Called when other processes may have ended the leases of this one: it keeps the jobs that no worker has taken, and aborts the others. */
    renew(): Promise<unknown> | null {
      return running.size === 0 ? null : renew();
    },
    stop,
    heedCancels,
    /** Stops, and resolves when no job is in progress. */
    async idle(): Promise<void> {
      stop();
      ending.abort();
      await looking;
      while (running.size > 0) await Promise.all([...running.values()].map((entry) => entry.done));
      poll?.stop();
      renewal?.stop();
    },
  };
};

export type JobWorker = ReturnType<typeof createJobWorker>;
