import { ConfigError, type LoadedConfig } from '../core/config/index.ts';
import { type JobItemStore, type ModuleJobHandler, moduleJobHandler } from '../features/jobs/index.ts';
import {
  createScheduleKeys,
  type SchedulableKey,
  type ScheduleKeys,
  UnknownKeysError,
} from '../features/schedules/index.ts';
import type { Foundation } from './foundation.ts';

const statedKey = 'Service:Scheduling:SchedulableHandlerKeys';

/** What schedules may start. Throws ConfigError for a stated key that nobody works on. */
export const scheduleKeys = (
  { values, sources }: LoadedConfig,
  registered: readonly (SchedulableKey & { readonly isOffered: boolean })[],
): ScheduleKeys => {
  try {
    return createScheduleKeys(registered, values.Service.Scheduling.SchedulableHandlerKeys);
  } catch (error) {
    if (!(error instanceof UnknownKeysError)) throw error;
    const known = registered.map(({ key }) => key).toSorted();
    const message = `expected keys of ${known.join(', ')}, and not ${error.keys.join(', ')}`;
    throw new ConfigError([
      { key: statedKey, source: sources.get(statedKey) ?? { kind: 'default' }, code: 'invalid-value', message },
    ]);
  }
};

/** The jobs of the host's modules. */
export const composeModuleJobs = (
  { config, log, newId }: Foundation['base'],
  handlers: readonly { readonly value: ModuleJobHandler }[],
  items: JobItemStore,
) => {
  const { Drain } = config.Service;
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const deps = { items, ending: ending.signal, log, newId };
  return {
    handlers: Object.fromEntries(handlers.map(({ value }) => [value.key, moduleJobHandler(value, deps)])),
    schedulable: handlers.map(({ value: { key, schedulable } }) => ({
      key,
      payload: 'Any' as const,
      target: async (_tenantId: string, name: string) => name,
      isOffered: schedulable !== false,
    })),
    /** Of the service's life: jobs in progress have the time of the drain. */
    part: {
      async draining(): Promise<void> {
        const end = (): void => ending.abort(new Error('The service is stopping.'));
        if (Drain.Enabled && Drain.Timeout > 0) timer ??= setTimeout(end, Drain.Timeout);
        else end();
      },
      close: (): void => clearTimeout(timer),
    },
  };
};
