import type { Config } from '../../core/config/schema.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { Storage } from '../../db/storage.ts';
import { createScheduleDispatch, type ScheduleDispatchDeps } from './schedule-dispatch.ts';
import { type ScheduleServiceDeps, scheduleService } from './schedules.service.ts';
import { scheduleStore } from './schedules.store.ts';

export { createScheduleKeys, type SchedulableKey, type ScheduleKeys, UnknownKeysError } from './schedule-keys.ts';

export interface SchedulesDeps
  extends Pick<ScheduleServiceDeps, 'keys' | 'audit' | 'prefix' | 'wake' | 'newId'>,
    Pick<ScheduleDispatchDeps, 'clock' | 'failures'> {
  readonly config: Config;
  readonly announcements: Announcements;
  readonly storage: Storage;
  readonly log: ScheduleServiceDeps['log'] & ScheduleDispatchDeps['log'];
}

export const schedulesFeature = (deps: SchedulesDeps) => {
  const { Scheduling } = deps.config.Service;
  const base = {
    ...deps,
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
