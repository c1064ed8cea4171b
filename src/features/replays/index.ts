import type { Handlers } from '../../core/context.ts';
import { type BundleServiceDeps, bundleService } from './bundle.service.ts';
import type { replayOperations } from './replays.operations.ts';
import { type ReplayServiceDeps, replayService } from './replays.service.ts';

export { type BundleSource, openBundle } from './bundle-reader.ts';
export { replayBundle } from './offline-replay.ts';
export type { BundleReport, RunReport, StepReport } from './replay-report.ts';

export interface ReplaysFeature {
  readonly handlers: Handlers<typeof replayOperations>;
}

export const replaysFeature = (deps: ReplayServiceDeps & BundleServiceDeps): ReplaysFeature => ({
  handlers: { ...replayService(deps), ...bundleService(deps) },
});
