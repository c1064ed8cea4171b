import { setTimeout as pause } from 'node:timers/promises';
import { AcpError } from '../../contract/errors.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import { createTurns } from '../../core/event-loop-turns.ts';
import type { Logger } from '../../core/logger.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { BackgroundService, HeldLease } from '../../scheduler/background-service.ts';
import { CronError } from '../../scheduler/cron.ts';
import { type EnteredJobs, type NewScheduledJob, scheduledJobStore, serviceLeaseStore } from '../jobs/index.ts';
import { type FollowingOccurrence, rememberOccurrences } from './occurrences.rules.ts';
import { payloadProblem } from './payload-items.rules.ts';
import { type JobQueueing, type JobToQueue, jobOf, queueJobs, type ScheduleJobSettings } from './schedule-jobs.ts';
import type { ScheduleKeys } from './schedule-keys.ts';
import { type DuePosition, type ScheduleStore, type StoredSchedule, scheduleStore } from './schedules.store.ts';

export interface ScheduleDispatchDeps extends ScheduleJobSettings, JobQueueing {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: ScheduleStore;
  readonly keys: ScheduleKeys;
  /** False: no schedule fires. */
  readonly enabled: boolean;
  readonly maxItems: number;
  readonly pollIntervalMs: number;
  /** Called once jobs are stored: workers look for those that are due, and end those that have to. */
  readonly entered: (dueAt: number, jobs: EnteredJobs) => Promise<void>;
  /** Who hears of jobs that have failed before anybody worked on them. */
  readonly failures: JobFailures;
  /** Of the store: when a schedule is due is the same for all processes. */
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
}

interface JobFailures {
  /** Asked before: null, or it resolves once it is known who listens. */
  current(): Promise<void> | null;
  /** For the unit that stores the job. */
  bornFailed(job: NewScheduledJob, failure: { readonly code: string }): readonly Statement[];
  /** Called once it is stored. */
  ended(job: NewScheduledJob): void;
}

interface Following {
  readonly nextRunAt: number | null;
  /** Why there is none. */
  readonly failure: NewScheduledJob['failure'];
}

/** A schedule that is due, with what it makes. */
interface Firing {
  readonly schedule: StoredSchedule & DuePosition;
  readonly nextRunAt: number | null;
  readonly queued: JobToQueue;
}

// One unit of the store, and a few milliseconds of work.
const schedulesAtOnce = 50;
const longestPauseMs = 25;
// Of all jobs of a unit; one that has more is a unit of its own.
const itemsAtOnce = 500;

const unreadable = { code: 'decryption-failed', message: 'The payload of the schedule cannot be decrypted.' };
const unreadableCron = (message: string) => ({
  code: 'schedule-invalid',
  message: `The schedule does not fire any more: ${message}`,
});

export interface ScheduleDispatch extends BackgroundService {
  /** A schedule was saved, here or elsewhere, that is due then; null: some may have been. */
  soon(dueAt: number | null): void;
}

/**
 * Makes jobs of schedules that are due, one of each, whatever was missed while nothing looked. Others may do the same at
 * the same time: whoever moves a schedule on to its next time has its job.
 * Design: docs/design/triggers-and-webhooks.md.
 */
export const createScheduleDispatch = (deps: ScheduleDispatchDeps): ScheduleDispatch => {
  const { storage, store, clock, log } = deps;
  let poll: Timer | null = null;
  let alarm: Timer | null = null;
  let alarmAt = Number.POSITIVE_INFINITY;
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let acts: () => boolean = () => false;
  let lease: () => HeldLease | null = () => null;

  const following = (schedule: StoredSchedule, now: number, next: FollowingOccurrence): Following => {
    const { cron, time_zone: timeZone } = schedule;
    if (cron === null) return { nextRunAt: null, failure: null };
    try {
      return { nextRunAt: next({ cron, timeZone }, now), failure: null };
    } catch (error) {
      // It was saved by a version that read it otherwise, or its zone is gone.
      if (error instanceof CronError || error instanceof RangeError)
        return { nextRunAt: null, failure: unreadableCron(error.message) };
      throw error;
    }
  };

  const failureOf = (schedule: StoredSchedule, payload: unknown): NewScheduledJob['failure'] => {
    if (!schedule.isReadable) return unreadable;
    const key = deps.keys.get(schedule.handler_key);
    // The worker tells of a key that nobody has.
    if (key === undefined) return null;
    const problem = payloadProblem(payload, key, deps.maxItems);
    return problem === null ? null : { code: 'payload-invalid', message: `The payload ${problem}.` };
  };

  const firingOf = (schedule: StoredSchedule & DuePosition, now: number, next: FollowingOccurrence): Firing => {
    const payload = schedule.payload === null ? null : (JSON.parse(schedule.payload) as unknown);
    const { nextRunAt, failure } = following(schedule, now, next);
    const occurrence = { at: schedule.next_run_at, now };
    const what = { payload, failure: failure ?? failureOf(schedule, payload) };
    return { schedule, nextRunAt, queued: jobOf(schedule, occurrence, what, deps) };
  };

  const toldFailures = (jobs: readonly JobToQueue[]): readonly Statement[] =>
    jobs.flatMap(({ job }) => (job.failure === null ? [] : deps.failures.bornFailed(job, job.failure)));

  const countFailures = (jobs: readonly JobToQueue[]): void => {
    for (const { job } of jobs) if (job.failure !== null) deps.failures.ended(job);
  };

  /** One that a flow lets in is alone. */
  const lineOf = ([first]: readonly JobToQueue[]): string | undefined => first && deps.lanes.lineOf(first.job);

  /** All of them in one unit; rejects with a ConditionFailedError where another process was at one of them. */
  const fire = async (firings: readonly Firing[]): Promise<void> => {
    const jobs = firings.map(({ queued }) => queued);
    const entered = await storage.transaction(async (stores) => {
      const { fired } = stores(scheduleStore);
      const moves = firings.map(({ schedule, nextRunAt, queued }) => fired(schedule, nextRunAt, queued.job.now));
      const queued = await queueJobs(stores, [...moves, ...toldFailures(jobs)], jobs, deps);
      await stores(serviceLeaseStore).assertHeld(lease());
      return queued;
    }, lineOf(jobs));
    countFailures(jobs);
    await deps.entered(firings[0]?.queued.job.now ?? clock.now(), entered);
  };

  /** Where the unit of many has failed. An occurrence that has its job, since the clock was set back, makes no other. */
  const fireAlone = async ({ schedule, nextRunAt, queued }: Firing): Promise<void> => {
    const { made, entered } = await storage.transaction(
      async (stores) => {
        const hasOccurred = await stores(scheduledJobStore).hasOccurred(schedule.id, schedule.next_run_at);
        const lastRunAt = hasOccurred ? schedule.last_run_at : queued.job.now;
        const move = stores(scheduleStore).fired(schedule, nextRunAt, lastRunAt);
        const jobs = hasOccurred ? [] : [queued];
        const queuedJobs = await queueJobs(stores, [move, ...toldFailures(jobs)], jobs, deps);
        await stores(serviceLeaseStore).assertHeld(lease());
        return { made: jobs, entered: queuedJobs };
      },
      lineOf([queued]),
    );
    countFailures(made);
    await deps.entered(queued.job.now, entered);
  };

  const fireEach = async (firings: readonly Firing[]): Promise<void> => {
    for (const firing of firings) {
      if (!acts()) return;
      try {
        await fireAlone(firing);
      } catch (error) {
        // Another process was faster, or the schedule was changed or deleted.
        if (error instanceof ConditionFailedError) continue;
        if (error instanceof AcpError && error.code === 'store-unavailable') throw error;
        const { tenant_id: tenantId, name: schedule } = firing.schedule;
        log.error({ tenantId, schedule, error }, 'A schedule that is due could not be dispatched');
      }
    }
  };

  const fireUnit = async (firings: readonly Firing[]): Promise<void> => {
    const [first] = firings;
    if (first === undefined || !acts()) return;
    const listening = firings.some(({ queued }) => queued.job.failure !== null) ? deps.failures.current() : null;
    if (listening !== null) await listening;
    try {
      await fire(firings);
    } catch (error) {
      if (error instanceof AcpError && error.code === 'store-unavailable') throw error;
      // Where two look at the same time the other one has most of them by now.
      const left = await store.unmoved(firings.map(({ schedule }) => schedule));
      await fireEach(firings.filter(({ schedule }) => left.has(schedule.id)));
    }
  };

  /** Those of one read, in units that are not too large. */
  const fireAll = async (due: readonly StoredSchedule[], now: number, next: FollowingOccurrence): Promise<void> => {
    const turn = createTurns();
    let unit: Firing[] = [];
    let items = 0;
    for (const schedule of due) {
      const { next_run_at: nextRunAt } = schedule;
      if (nextRunAt === null) continue;
      const firing = firingOf({ ...schedule, next_run_at: nextRunAt }, now, next);
      await turn();
      // What a flow lets in has rows to itself that others of its key want, too.
      if (deps.lanes.isGuarded(firing.queued.job)) {
        await fireUnit([firing]);
        continue;
      }
      if (items > 0 && items + firing.queued.items.length > itemsAtOnce) {
        await fireUnit(unit);
        unit = [];
        items = 0;
      }
      unit.push(firing);
      items += firing.queued.items.length;
    }
    await fireUnit(unit);
  };

  const positionOf = ({ tenant_id, name, next_run_at }: StoredSchedule): DuePosition => ({
    tenant_id,
    name,
    next_run_at: next_run_at ?? 0,
  });

  const look = async (): Promise<void> => {
    const next = rememberOccurrences();
    let after: DuePosition | null = null;
    while (acts()) {
      const now = clock.now();
      const begun = performance.now();
      const due: readonly StoredSchedule[] = await store.due(now, after, schedulesAtOnce);
      await fireAll(due, now, next);
      const last = due.at(-1);
      if (last === undefined || due.length < schedulesAtOnce) break;
      // From here on: one that could not be dispatched holds up no other.
      after = positionOf(last);
      // On a store with one connection others have it in between, for as long as it was taken.
      await pause(Math.min(performance.now() - begun, longestPauseMs));
    }
    if (!acts()) return;
    const earliest = await store.earliest();
    if (earliest !== null && earliest > clock.now()) wakeAt(earliest);
  };

  const lookSoon = (): Promise<void> => {
    if (looking !== null) {
      lookAgain = true;
      return looking;
    }
    looking = look()
      .catch((error: unknown) => log.error({ error }, 'Due schedules could not be dispatched'))
      .finally(() => {
        looking = null;
        if (!lookAgain) return;
        lookAgain = false;
        void lookSoon();
      });
    return looking;
  };

  /** Looks at that time, where no look comes before it by itself. */
  const wakeAt = (dueAt: number): void => {
    const delayMs = dueAt - clock.now();
    if (poll === null || dueAt >= alarmAt || delayMs >= deps.pollIntervalMs) return;
    alarm?.stop();
    alarmAt = dueAt;
    alarm = clock
      .after(Math.max(delayMs, 0), () => {
        alarm = null;
        alarmAt = Number.POSITIVE_INFINITY;
        return lookSoon();
      })
      .unref();
  };

  return {
    start(mayAct, held) {
      if (!deps.enabled || poll !== null) return;
      acts = mayAct;
      lease = held;
      poll = clock.every(deps.pollIntervalMs, lookSoon);
      void lookSoon();
    },
    soon(dueAt) {
      if (dueAt !== null) wakeAt(dueAt);
      else if (poll !== null) void lookSoon();
    },
    async stop() {
      acts = () => false;
      poll?.stop();
      alarm?.stop();
      poll = null;
      alarm = null;
      alarmAt = Number.POSITIVE_INFINITY;
      lookAgain = false;
      await looking;
    },
  };
};
