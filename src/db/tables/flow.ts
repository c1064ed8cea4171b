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

/** How many jobs of a key may have a place, by the last one that was accepted. Stands while there are any. */
interface FlowLimitRow {
  /** A hash, as that of a window. */
  id: string;
  tenant_id: string;
  most: number;
}

/** A job that needs a place of a key. */
interface FlowPlaceRow {
  job_id: string;
  limit_id: string;
  tenant_id: string;
  /** 0: waits for its time; 1: waits for a place; 2: has one. */
  state: number;
  /** That of the job. */
  rank: number;
  /** That of the job. */
  due_at: number;
  /** What the job says while it waits. */
  message: string;
}

export const flowTables = {
  flow_windows: tableOf<FlowWindowRow>(),
  flow_keys: tableOf<FlowKeyRow>(),
  flow_limits: tableOf<FlowLimitRow>(),
  flow_places: tableOf<FlowPlaceRow>(),
};
