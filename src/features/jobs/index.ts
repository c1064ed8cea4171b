export { observeJobDepth } from './job-depth.ts';

import { type JobServiceDeps, jobService } from './jobs.service.ts';

export const jobsFeature = (deps: JobServiceDeps) => ({ handlers: jobService(deps) });

export type { JobWork } from './jobs.service.ts';
export { createJobStore, type JobStore } from './jobs.store.ts';
export { createServiceLeaseStore } from './service-leases.store.ts';
