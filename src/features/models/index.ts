import type { Clock } from '../../core/clock.ts';
import type { InstanceState } from '../../core/instance-state.ts';
import type { Storage } from '../../db/storage.ts';
import { createHealthResults } from './health-results.ts';
import { modelHealthStore } from './model-health.store.ts';
import { createModelHealth, type ModelHealthDeps } from './model-health.ts';
import { type ModelServiceDeps, modelService } from './models.service.ts';

export type { ModelHealth } from './model-health.ts';

export interface ModelsFeatureDeps
  extends Pick<ModelHealthDeps, 'providers' | 'settings' | 'clock' | 'log'>,
    Pick<ModelServiceDeps, 'allows'> {
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'table'>;
  /** True: other processes may write the same store. */
  readonly isShared: boolean;
  readonly storeClock: Pick<Clock, 'now'>;
}

// Rows outlive the processes that wrote them. After an hour nobody has cared, and nothing is known.
const shortestCountMs = 3_600_000;

export const modelsFeature = ({ storage, state, isShared, storeClock, ...deps }: ModelsFeatureDeps) => {
  const { cacheTtlMs, backgroundIntervalMs } = deps.settings;
  const results = createHealthResults({
    ...{ state, isShared, now: storeClock.now },
    store: storage.stores(modelHealthStore),
    countsMs: Math.max(shortestCountMs, cacheTtlMs, 2 * (backgroundIntervalMs ?? 0)),
  });
  const health = createModelHealth({ ...deps, results, now: storeClock.now });
  return { handlers: modelService({ ...deps, health }), health };
};
