import { type BundleServiceDeps, bundleService } from './bundle.service.ts';
import { type ReplayServiceDeps, replayService } from './replays.service.ts';

export { type BundleSource, openBundle } from './bundle-reader.ts';
export { replayBundle } from './offline-replay.ts';
export type { BundleReport, RunReport, StepReport } from './replay-report.ts';

export const replaysFeature = (deps: ReplayServiceDeps & BundleServiceDeps) => ({
  handlers: { ...replayService(deps), ...bundleService(deps) },
});

export type ReplaysFeature = ReturnType<typeof replaysFeature>;
