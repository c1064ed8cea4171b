export { observeJobDepth } from './job-depth.ts';

import { type JobServiceDeps, jobService } from './jobs.service.ts';

export const jobsFeature = (deps: JobServiceDeps) => ({ handlers: jobService(deps) });

export {
  type Drop,
  debounced,
  type FlowSource,
  jobReason,
  keyLine,
  latestOf,
  lineId,
  overRateLimit,
  placeLimit,
  rankOf,
  replaced,
  skipped,
  throttled,
  windowUse,
  workLine,
} from './flow.rules.ts';
export { type FlowStore, flowStore, type LastEntered } from './flow.store.ts';
export { forgetting } from './flow-forgetting.ts';
export { flowPlaceStore } from './flow-places.store.ts';
export { createFlowPlaces, type FlowPlaces } from './flow-places.ts';
export { groupedQueue } from './grouped-queue.ts';
export { createHeldJobs, dueNow, type HeldJobDeps, type HeldJobs } from './held-jobs.ts';
export { itemPages } from './item-pages.ts';
export { itemsOutcome } from './items-outcome.ts';
export { type JobItem, type JobItemEnd, type JobItemStore, jobItemStore } from './job-items.store.ts';
export { leaseStatements } from './job-lease.store.ts';
export { internalJobKeys, type JobWork, remoteCancelKey, toJobRecord } from './jobs.service.ts';
export { type JobHold, type JobReason, type JobStore, jobStore } from './jobs.store.ts';
export { createLaneEntry, type EnteredJobs, type LaneEntry, nothingEntered } from './lane-entry.ts';
export { type LaneFlows, laneFlows } from './lane-flows.ts';
export {
  type ModuleJob,
  type ModuleJobHandler,
  type ModuleJobItem,
  type ModuleJobResult,
  moduleJobHandler,
  notHeld,
} from './module-jobs.ts';
export { type NewScheduledJob, scheduledJobStore } from './scheduled-jobs.store.ts';
export { serviceLeaseStore } from './service-leases.store.ts';
export { type JobPosition, setBackStore } from './set-back.store.ts';
export { workerHeartbeatStore } from './worker-heartbeats.store.ts';
