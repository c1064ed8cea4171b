import { tableOf } from './table-of.ts';

/** How often a key of a rate limit was used in its current window. */
interface FlowWindowRow {
  /** A hash of tenant, agent, and the value at the key. */
  id: string;
  tenant_id: string;
  ends_at: number;
  starts: number;
}

/** The job that a debounce or a singleton has let in last. */
interface FlowKeyRow {
  /** A hash, as that of a window. */
  id: string;
  tenant_id: string;
  job_id: string;
  /** When the first of those that followed each other was accepted. */
  since: number;
}

export const flowTables = { flow_windows: tableOf<FlowWindowRow>(), flow_keys: tableOf<FlowKeyRow>() };
