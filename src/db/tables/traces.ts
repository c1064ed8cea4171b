/** Spans of a run tree, kept when its root closed. */
export interface RunTraceRow {
  /** The root. */
  run_id: string;
  id: string;
  tenant_id: string;
  trace_id: string;
  started_at: number;
  ended_at: number;
  /** JSON list of spans. */
  spans: string;
  span_count: number;
}

export interface TraceTables {
  run_traces: RunTraceRow;
}

export const traceTableNames = ['run_traces'] as const satisfies readonly (keyof TraceTables)[];
