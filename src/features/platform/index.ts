import { createHealth, type HealthDeps } from './health.ts';
import { type MetaDeps, metaService } from './meta.service.ts';

export { diagnosticsService } from './diagnostics.service.ts';

/** What the service tells about itself. */
export const platformFeature = (deps: MetaDeps & HealthDeps) => ({
  meta: metaService(deps),
  health: createHealth(deps),
});

export type { HealthReport } from './health.ts';
export type { MetaDeps } from './meta.service.ts';
export type { StoreSharing } from './store-sharing.ts';
