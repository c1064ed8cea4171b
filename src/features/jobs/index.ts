export { observeJobDepth } from './job-depth.ts';

import { type JobServiceDeps, jobService } from './jobs.service.ts';

export const jobsFeature = (deps: JobServiceDeps) => ({ handlers: jobService(deps) });

export type { JobWork } from './jobs.service.ts';
export { type JobStore, jobStore } from './jobs.store.ts';
export { serviceLeaseStore } from './service-leases.store.ts';
