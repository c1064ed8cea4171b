export { type ChildPlanDeps, createChildPlans } from './child-plans.ts';
export { createDroppedRuns } from './dropped-run.ts';
export type { FlowDoors } from './flow-entry.ts';
export { createLaunch, type Launch, type LaunchDeps } from './launch.ts';
export type {
  ArrivingWork,
  Entrance,
  ItemOfJob,
  LaunchRequest,
  OutsideCall,
  RunOwner,
  RunWork,
} from './launch-request.ts';
export { type Preflight, preflightCheck } from './preflight.ts';
export {
  approvalResumeKey,
  type ContinuationPayload,
  continuationKey,
  isQueuedRun,
  packPrincipal,
  pauseContextOf,
  runJobKeys,
} from './queued-run.ts';
export { createQueuedRuns, type QueuedRuns } from './queued-runs.ts';
export { failureError } from './refusals.ts';
export { runPlan } from './run-plan.ts';
