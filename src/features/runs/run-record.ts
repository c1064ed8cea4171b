import type { RunAttribution } from '../../core/caller/attribution.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { RunRow } from '../../db/tables.ts';
import { decimal } from '../../engine/pricing.ts';
import { addUsage, reportedUsage } from '../../engine/usage.ts';
import type { RunCost, RunError, RunRecord, RunTreeCost, RunUsage } from './runs.schema.ts';
import { decodeCost, type StoredCost } from './stored-cost.ts';

type UsageRow = Pick<
  RunRow,
  | 'input_tokens'
  | 'output_tokens'
  | 'total_tokens'
  | 'cached_input_tokens'
  | 'reasoning_tokens'
  | 'audio_input_tokens'
  | 'audio_output_tokens'
>;

export const tokensOf = (row: UsageRow): RunUsage => ({
  inputTokens: row.input_tokens,
  outputTokens: row.output_tokens,
  totalTokens: row.total_tokens,
  cachedInputTokens: row.cached_input_tokens,
  reasoningTokens: row.reasoning_tokens,
  audioInputTokens: row.audio_input_tokens,
  audioOutputTokens: row.audio_output_tokens,
});

/** Null when the provider reported nothing. */
const usageOf = (row: UsageRow): RunUsage | null => reportedUsage(tokensOf(row));

const costOf = (stored: StoredCost | null): RunCost | null =>
  stored === null
    ? null
    : {
        inputCost: decimal(stored.i),
        inputPricePerMillionTokens: decimal(stored.pi),
        outputCost: decimal(stored.o),
        outputPricePerMillionTokens: decimal(stored.po),
        cachedInputCost: decimal(stored.c),
        cachedInputPricePerMillionTokens: decimal(stored.pc),
        totalCost: decimal(stored.t),
        currency: stored.u,
        source: stored.s,
      };

const sumUsage = (a: RunUsage | null, b: RunUsage | null): RunUsage | null =>
  a === null || b === null ? (a ?? b) : addUsage(a, b);

/** Closed runs only: a run in progress has no cost yet and is not unknown. */
const treeCostOf = (rows: readonly RunRow[]): RunTreeCost | null => {
  const closed = rows.filter((row) => row.completed_at !== null).map((row) => decodeCost(row.cost));
  if (closed.length === 0) return null;
  const priced = closed.filter((cost) => cost?.t !== null && cost !== null);
  const total = (pick: (cost: StoredCost) => number | null): number | null =>
    priced.length === 0 ? null : decimal(priced.reduce((sum, cost) => sum + ((cost && pick(cost)) ?? 0), 0));
  return {
    inputCost: total((cost) => cost.i),
    outputCost: total((cost) => cost.o),
    cachedInputCost: total((cost) => cost.c),
    totalCost: total((cost) => cost.t),
    currency: priced[0]?.u ?? null,
    runsWithUnknownPricing: closed.length - priced.length,
  };
};

/** Who the run was for. */
export const storedAttribution = (row: Pick<RunRow, 'user_id' | 'labels'>): RunAttribution => ({
  userId: row.user_id,
  labels: row.labels === null ? null : (JSON.parse(row.labels) as Record<string, string>),
});

/** What the store did not take of the record of a run that has ended; empty: nothing is missing. */
export const storedWarnings = (row: Pick<RunRow, 'record_incomplete'>): readonly 'recording-incomplete'[] =>
  row.record_incomplete === 1 ? ['recording-incomplete'] : [];

/** The record of a run; `descendants` are the runs below it, at any depth. */
export const toRunRecord = (
  row: RunRow,
  descendants: readonly RunRow[],
  continuedBy: string | null = null,
): RunRecord => {
  const tree = [row, ...descendants];
  const warnings = storedWarnings(row);
  return {
    id: row.id,
    tenantId: row.tenant_id,
    agentName: row.agent_name,
    kind: row.kind as RunRecord['kind'],
    remoteTask: row.remote_task === null ? null : (JSON.parse(row.remote_task) as RunRecord['remoteTask']),
    workflowName: null,
    status: row.status as RunRecord['status'],
    createdAt: isoTime(row.created_at),
    startedAt: isoTimeOrNull(row.started_at),
    completedAt: isoTimeOrNull(row.completed_at),
    durationMs: row.completed_at === null || row.started_at === null ? null : row.completed_at - row.started_at,
    agentVersion: row.agent_version,
    modelProvider: row.model_provider,
    modelId: row.model_id,
    isStreaming: row.is_streaming === 1,
    jobId: row.job_id,
    sessionId: row.session_id,
    ...storedAttribution(row),
    parentRunId: row.parent_run_id,
    rootRunId: row.root_run_id,
    depth: row.depth,
    childRunCount: row.child_run_count,
    replayOfRunId: row.replay_of_run_id,
    continuedFromRunId: row.continued_from_run_id,
    continuedBy,
    experimentId: null,
    variant: null,
    usage: usageOf(row),
    treeUsage: tree.map(usageOf).reduce(sumUsage, null),
    cost: costOf(decodeCost(row.cost)),
    treeCost: treeCostOf(tree),
    error:
      row.error_type === null
        ? null
        : {
            type: row.error_type,
            message: row.error_message ?? '',
            class: (row.error_class ?? 'Unknown') as NonNullable<RunRecord['error']>['class'],
            fingerprint: row.error_fingerprint,
            ...(row.error_provider === null
              ? {}
              : { provider: JSON.parse(row.error_provider) as NonNullable<RunError['provider']> }),
          },
    eventCount: row.event_count,
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
  };
};
