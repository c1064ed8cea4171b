import { tableOf } from './table-of.ts';

/** How often a key of a rate limit was used in its current window. */
interface FlowWindowRow {
  /** A hash of tenant, agent, and the value at the key. */
  id: string;
  tenant_id: string;
  ends_at: number;
  starts: number;
}

export const flowTables = { flow_windows: tableOf<FlowWindowRow>() };
