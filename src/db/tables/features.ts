import { a2aTables } from './a2a.ts';
import { accessTables } from './access.ts';
import { approvalTables } from './approvals.ts';
import { arrivingWorkTables } from './arriving-work.ts';
import { contentTables } from './contents.ts';
import { externalSpanTables } from './external-spans.ts';
import { flowTables } from './flow.ts';
import { mcpTables } from './mcp.ts';
import { modelHealthTables } from './model-health.ts';
import { openAiTables } from './openai.ts';
import { quotaTables } from './quotas.ts';
import { remoteAgentTables } from './remote-agents.ts';
import { retentionTables } from './retention.ts';
import { runCancelTables } from './run-cancels.ts';
import { skillTables } from './skills.ts';
import { tableOf } from './table-of.ts';

/** Spans of a run tree, kept when its root closed. */
interface RunTraceRow {
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

/** Tables whose rows are described in files of their own. */
export const featureTables = {
  ...a2aTables,
  ...accessTables,
  ...approvalTables,
  ...arrivingWorkTables,
  ...contentTables,
  ...externalSpanTables,
  ...flowTables,
  ...mcpTables,
  ...modelHealthTables,
  ...openAiTables,
  ...quotaTables,
  ...remoteAgentTables,
  ...retentionTables,
  ...runCancelTables,
  ...skillTables,
  run_traces: tableOf<RunTraceRow>(),
};
