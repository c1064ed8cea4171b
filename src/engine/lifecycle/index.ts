/** How a run opens, goes on and closes. */
export type { EngineSettings, PauseJournal, RunEnds } from './engine-ports.ts';
export { createRunEngine, type LiveRuns, type RunEngine } from './run-engine.ts';
export { notAdmitted } from './run-quota-use.ts';
export { warningsOf } from './run-warnings.ts';
