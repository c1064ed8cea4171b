import { type MetaDeps, metaService } from './meta.service.ts';

/** What the service tells about itself. */
export const platformFeature = (deps: MetaDeps) => ({ meta: metaService(deps) });

export type { MetaDeps } from './meta.service.ts';
