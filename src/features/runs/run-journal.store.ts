import { defineStore, type StoreDefinition } from '../../db/define-store.ts';
import { insertStatement, type Statement, updateStatement } from '../../db/statement.ts';
import { quotaUse } from '../../engine/control/index.ts';
import type { OpenedRun, RunJournal, ToolCallEntry, ToolCallSettlement } from '../../engine/record/index.ts';
import type { RunCounters } from '../quotas/index.ts';
import { encodeCost } from './stored-cost.ts';

const openColumns = [
  'id',
  'tenant_id',
  'agent_name',
  'kind',
  'status',
  'created_at',
  'started_at',
  'agent_version',
  'model_provider',
  'model_id',
  'is_streaming',
  'job_id',
  'session_id',
  'user_id',
  'owner_id',
  'labels',
  'parent_run_id',
  'root_run_id',
  'continued_from_run_id',
  'replay_of_run_id',
  'depth',
  'quota_day',
] as const;

const closeColumns = [
  'status',
  'completed_at',
  'agent_version',
  'model_provider',
  'model_id',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'cached_input_tokens',
  'reasoning_tokens',
  'audio_input_tokens',
  'audio_output_tokens',
  'cost',
  'total_cost_micros',
  'error_type',
  'error_class',
  'error_message',
  'error_fingerprint',
  'error_provider',
  'event_count',
] as const;

const settleColumns = [
  'state',
  'result',
  'truncated',
  'error',
  'succeeded',
  'authorization_denied',
  'timed_out',
  'duration_ms',
  'usage',
  'settled_at',
  'settled_order',
] as const;

const entryColumns = [
  'id',
  'tenant_id',
  'run_id',
  'tool_call_id',
  'tool_name',
  'source',
  'effect',
  'idempotency_key',
  'state',
  'arguments',
  'truncated',
  'created_at',
] as const;

const flag = (value: boolean): number => (value ? 1 : 0);

const settlementRow = (settlement: ToolCallSettlement) => ({
  state: 'Settled',
  result: settlement.result,
  error: settlement.error,
  succeeded: flag(settlement.succeeded),
  authorization_denied: flag(settlement.authorizationDenied),
  timed_out: flag(settlement.timedOut),
  duration_ms: settlement.durationMs,
  usage: settlement.usage === null ? null : JSON.stringify(settlement.usage),
  settled_at: settlement.settledAt,
  settled_order: settlement.order,
});

const entryRow = (entry: ToolCallEntry, state: string) => ({
  id: entry.id,
  tenant_id: entry.tenantId,
  run_id: entry.runId,
  tool_call_id: entry.toolCallId,
  tool_name: entry.toolName,
  source: entry.source,
  effect: entry.effect,
  idempotency_key: entry.idempotencyKey,
  state,
  arguments: entry.arguments,
  truncated: flag(entry.argumentsTruncated),
  created_at: entry.createdAt,
});

const openRow = (run: OpenedRun, quotaDay: string | null) => ({
  id: run.id,
  tenant_id: run.tenantId,
  agent_name: run.agentName,
  kind: run.kind ?? 'Agent',
  status: run.status,
  created_at: run.createdAt,
  started_at: run.startedAt,
  agent_version: run.agentVersion,
  model_provider: run.modelProvider,
  model_id: run.modelId,
  is_streaming: flag(run.isStreaming),
  job_id: run.jobId,
  session_id: run.sessionId,
  user_id: run.userId,
  owner_id: run.ownerId,
  labels: run.labels === null ? null : JSON.stringify(run.labels),
  parent_run_id: run.parentRunId,
  root_run_id: run.rootRunId,
  continued_from_run_id: run.continuedFromRunId,
  replay_of_run_id: run.replayOfRunId ?? null,
  depth: run.depth,
  quota_day: quotaDay,
});

/** Most runs have neither culture, parameters nor session: those keep nothing but their messages. */
const contextOf = ({ inputContext: context }: OpenedRun): string | null => {
  if (context === undefined) return null;
  const { culture, parameters, historyLength } = context;
  return culture === null && historyLength === null && Object.keys(parameters).length === 0
    ? null
    : JSON.stringify(context);
};

const inputRow = (run: OpenedRun, input: NonNullable<OpenedRun['input']>) => ({
  run_id: run.id,
  messages: JSON.stringify(input),
  context: contextOf(run),
});

/** The writes of an executing run, compiled once per process. Null counters: runs do not count against quotas. */
export const createRunJournal = (currency: string | null, counters: RunCounters | null): StoreDefinition<RunJournal> =>
  defineStore(({ db, rows }) => {
    const insertRun = insertStatement(db, 'runs', openColumns);
    const insertLabel = insertStatement(db, 'run_labels', ['tenant_id', 'key', 'value', 'run_id']);
    const insertInput = insertStatement(db, 'run_inputs', ['run_id', 'messages', 'context']);
    const insertCalls = insertStatement(db, 'run_model_calls', ['run_id', 'calls']);
    const insertPack = insertStatement(db, 'run_events', ['run_id', 'first_sequence', 'last_sequence', 'events']);
    const insertTrace = insertStatement(db, 'run_traces', [
      'run_id',
      'id',
      'tenant_id',
      'trace_id',
      'started_at',
      'ended_at',
      'spans',
      'span_count',
    ]);
    const insertEntry = insertStatement(db, 'tool_invocations', entryColumns);
    const insertSettled = insertStatement(db, 'tool_invocations', [
      ...entryColumns.filter((c) => c !== 'truncated' && c !== 'state'),
      ...settleColumns,
      'called',
    ] as const);
    const settle = updateStatement(db, 'tool_invocations', settleColumns, ['run_id', 'id']);
    const close = updateStatement(db, 'runs', closeColumns, ['tenant_id', 'id']);
    const begin = updateStatement(
      db,
      'runs',
      ['started_at', 'agent_version', 'model_provider', 'model_id', 'is_streaming'],
      ['tenant_id', 'id', 'status'],
      { mustChange: true },
    );
    const insertStep = insertStatement(db, 'run_steps', ['run_id', 'sequence', 'content']);
    const { sql: dropStepsSql } = db.deleteFrom('run_steps').where('run_id', '=', '').compile();
    const setUnknown = updateStatement(db, 'tool_invocations', ['state'], ['run_id', 'state']);
    const setRunning = updateStatement(db, 'runs', ['status'], ['tenant_id', 'id', 'status'], { mustChange: true });
    const { sql: countChildSql } = db
      .updateTable('runs')
      .set((eb) => ({ child_run_count: eb('child_run_count', '+', 1) }))
      .where('tenant_id', '=', '')
      .where('id', '=', '')
      .compile();

    const settledAtOnce = (entry: ToolCallEntry, settlement: ToolCallSettlement, called: boolean): Statement =>
      insertSettled(
        rows.seal('tool_invocations', entry.tenantId, {
          ...entryRow(entry, 'Settled'),
          ...settlementRow(settlement),
          truncated: flag(entry.argumentsTruncated || settlement.truncated),
          called: flag(called),
        }),
      );

    const withInput = (run: OpenedRun, statement: Statement): Statement[] =>
      run.input === null
        ? [statement]
        : [statement, insertInput(rows.seal('run_inputs', run.tenantId, inputRow(run, run.input)))];

    return {
      opened(run) {
        // A child counts with its root.
        const day = counters === null || run.parentRunId !== null ? null : counters.day();
        const statements = withInput(run, insertRun(openRow(run, day)));
        for (const [key, value] of Object.entries(run.labels ?? {}))
          statements.push(insertLabel({ tenant_id: run.tenantId, key, value, run_id: run.id }));
        if (run.parentRunId !== null)
          statements.push({ sql: countChildSql, parameters: [1, run.tenantId, run.parentRunId] });
        if (counters !== null && day !== null)
          statements.push(
            ...counters.opened({
              id: run.id,
              tenantId: run.tenantId,
              agentName: run.agentName,
              day,
              counts: run.continuedFromRunId === null,
            }),
          );
        return statements;
      },
      begun(run) {
        const key = { tenant_id: run.tenantId, id: run.id, status: 'Queued' };
        const [running, ...input] = withInput(run, setRunning({ status: 'Running' }, key));
        // An attempt that begins anew finds the input of the first one.
        const once = input.map((statement) => ({ ...statement, sql: `${statement.sql} on conflict do nothing` }));
        return [begin(openRow(run, null), key), ...(running === undefined ? [] : [running]), ...once];
      },
      closed(run) {
        const { usage, error } = run;
        const use = quotaUse(usage?.totalTokens, run.cost);
        return [
          close(
            {
              status: run.status,
              completed_at: run.completedAt,
              agent_version: run.agentVersion,
              model_provider: run.modelProvider,
              model_id: run.modelId,
              input_tokens: usage?.inputTokens ?? null,
              output_tokens: usage?.outputTokens ?? null,
              total_tokens: usage?.totalTokens ?? null,
              cached_input_tokens: usage?.cachedInputTokens ?? null,
              reasoning_tokens: usage?.reasoningTokens ?? null,
              audio_input_tokens: usage?.audioInputTokens ?? null,
              audio_output_tokens: usage?.audioOutputTokens ?? null,
              cost: encodeCost(run.cost, currency),
              total_cost_micros: run.cost?.total ?? null,
              error_type: error?.type ?? null,
              error_class: error?.class ?? null,
              error_message: error?.message ?? null,
              error_fingerprint: error?.fingerprint ?? null,
              error_provider: error?.provider === undefined ? null : JSON.stringify(error.provider),
              event_count: run.eventCount,
            },
            { tenant_id: run.tenantId, id: run.id },
          ),
          ...(counters?.closed({ id: run.id, tenantId: run.tenantId, rootRunId: run.rootRunId, tree: run.tree, use }) ??
            []),
        ];
      },
      packed: (tenantId, runId, first, last, events) =>
        insertPack(
          rows.seal('run_events', tenantId, { run_id: runId, first_sequence: first, last_sequence: last, events }),
        ),
      modelCalls: (tenantId, runId, calls) =>
        insertCalls(rows.seal('run_model_calls', tenantId, { run_id: runId, calls })),
      trace: (trace) =>
        insertTrace(
          rows.seal('run_traces', trace.tenantId, {
            run_id: trace.runId,
            id: trace.id,
            tenant_id: trace.tenantId,
            trace_id: trace.traceId,
            started_at: trace.startedAt,
            ended_at: trace.endedAt,
            spans: JSON.stringify(trace.spans),
            span_count: trace.spans.length,
          }),
        ),
      toolPending: (entry) => [insertEntry(rows.seal('tool_invocations', entry.tenantId, entryRow(entry, 'Pending')))],
      toolSettled(entry, settlement) {
        const key = { run_id: entry.runId, id: entry.id };
        const truncated = flag(entry.argumentsTruncated || settlement.truncated);
        return [
          settle(
            rows.seal('tool_invocations', entry.tenantId, { ...settlementRow(settlement), truncated, ...key }),
            key,
          ),
        ];
      },
      toolRefused: (entry, settlement) => [settledAtOnce(entry, settlement, false)],
      toolAnswered: (entry, settlement) => [settledAtOnce(entry, settlement, true)],
      toolsUnknown: (runId) => setUnknown({ state: 'Unknown' }, { run_id: runId, state: 'Pending' }),
      step: (tenantId, runId, sequence, content) =>
        insertStep(rows.seal('run_steps', tenantId, { run_id: runId, sequence, content })),
      stepsDropped: (runId) => ({ sql: dropStepsSql, parameters: [runId] }),
    };
  });
