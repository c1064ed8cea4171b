import { tableOf } from './table-of.ts';

/** A span of an agent that runs elsewhere. */
export interface ExternalSpanRow {
  tenant_id: string;
  trace_id: string;
  span_id: string;
  parent_span_id: string | null;
  /** 1: no other span of its process stands above it; it tells that its part of the trace is complete. */
  is_local_root: number;
  received_at: number;
  /** Whose the run will be; null once it is. */
  user_id: string | null;
  owner_id: string | null;
  /** Null: what it belongs to is not complete. Empty: it belongs to no run. */
  run_id: string | null;
  /** What was received, as JSON; null once it is part of a run. */
  span: string | null;
  /** How often it could not be made a run. */
  attempts: number;
  /** When that is tried again. */
  next_at: number;
  /** Why it is not tried any more; null: it is. */
  set_aside: string | null;
}

export const externalSpanTables = { external_spans: tableOf<ExternalSpanRow>() };
