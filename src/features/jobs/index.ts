export { createJobStore, type JobStore } from './jobs.store.ts';
