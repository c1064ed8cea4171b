import type { Config } from '../../core/config/schema.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { Storage } from '../../db/storage.ts';
import { createLaneEntry, type EnteredJobs, type FlowPlaces, flowStore, forgetting, laneFlows } from '../jobs/index.ts';
import { createScheduleDispatch, type ScheduleDispatchDeps } from './schedule-dispatch.ts';
import { type ScheduleServiceDeps, scheduleService } from './schedules.service.ts';
import { scheduleStore } from './schedules.store.ts';

export { createScheduleKeys, type SchedulableKey, type ScheduleKeys, UnknownKeysError } from './schedule-keys.ts';

export interface SchedulesDeps
  extends Pick<ScheduleServiceDeps, 'keys' | 'audit' | 'prefix' | 'newId'>,
    Pick<ScheduleDispatchDeps, 'clock' | 'failures'> {
  readonly config: Config;
  /** Has a worker look for jobs that are due since then. */
  readonly wake: (dueAt: number) => void;
  /** Has the worker that has this job hear that it was asked to end. */
  readonly heedCancel: (jobId: string) => void;
  readonly places: Pick<FlowPlaces, 'freed'>;
  readonly announcements: Announcements;
  readonly storage: Storage;
  readonly log: ScheduleServiceDeps['log'] & ScheduleDispatchDeps['log'];
}

export const schedulesFeature = (deps: SchedulesDeps) => {
  const { Scheduling } = deps.config.Service;
  const lanes = laneFlows(Scheduling.LaneFlows);
  const forget = forgetting(deps.storage.stores(flowStore));
  const base = {
    ...deps,
    lanes: createLaneEntry(lanes),
    async entered(dueAt: number, { dueAt: letInAt, ended, asked }: EnteredJobs) {
      deps.wake(Math.min(dueAt, letInAt));
      for (const jobId of asked) deps.heedCancel(jobId);
      for (const jobId of ended) await deps.places.freed(jobId);
      if (!lanes.hasAny) return;
      await forget(dueAt).catch((error: unknown) =>
        deps.log.warn({ error }, 'What flows of lanes have counted is kept for longer'),
      );
    },
    store: deps.storage.stores(scheduleStore),
    enabled: Scheduling.Enabled,
    maxItems: Scheduling.MaxItemsPerJob,
    maxAttempts: Scheduling.MaxAttempts,
  };
  const dispatch = createScheduleDispatch({ ...base, pollIntervalMs: Scheduling.PollInterval });
  const { announcements } = deps;
  announcements.listen('schedules', {
    heard: (dueAt) => dispatch.soon(Number(dueAt)),
    missed: () => dispatch.soon(null),
  });
  return {
    handlers: scheduleService({
      ...base,
      laneByHandlerKey: Scheduling.LaneByHandlerKey,
      planned(dueAt) {
        dispatch.soon(dueAt);
        // Whoever dispatches may be another process.
        announcements.announce('schedules', String(dueAt));
      },
      now: deps.clock.now,
    }),
    /** Makes jobs of schedules that are due. */
    dispatch,
  };
};
