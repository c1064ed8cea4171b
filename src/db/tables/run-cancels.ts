import { tableOf } from './table-of.ts';

/** The request that the process of a run is to cancel it. */
export interface RunCancelRow {
  run_id: string;
  /** As the run is to end: Requested, Interrupted or RolledBack. */
  cause: string;
  requested_by: string | null;
  requested_at: number;
}

export const runCancelTables = { run_cancels: tableOf<RunCancelRow>() };
