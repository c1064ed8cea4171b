import { defineStore, type StoreDefinition } from '../../db/define-store.ts';
import { insertStatement, type Statement, updateStatement } from '../../db/statement.ts';
import { askedCall } from '../../db/tables.ts';
import { quotaUse } from '../../engine/control/index.ts';
import type { OpenedRun, RunJournal, ToolCallEntry, ToolCallSettlement } from '../../engine/record/index.ts';
import type { RunCounters } from '../quotas/index.ts';
import { encodeCost } from './stored-cost.ts';
import { encodeShares } from './stored-shares.ts';

type ClosedRun = Parameters<RunJournal['closed']>[0];

const flag = (value: boolean): number => (value ? 1 : 0);

const settlementRow = (entry: ToolCallEntry, settlement: ToolCallSettlement) => ({
  state: 'Settled',
  result: settlement.result,
  truncated: flag(entry.argumentsTruncated || settlement.truncated),
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
  door: run.door ?? null,
  remote_task: run.remoteTask ?? null,
  agent_saved_at: run.agentSavedAt ?? null,
});

const closeRow = ({ usage, error, ...run }: ClosedRun, currency: string | null) => ({
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
  model_shares: encodeShares(run.shares ?? [], run, currency),
  error_type: error?.type ?? null,
  error_class: error?.class ?? null,
  error_message: error?.message ?? null,
  error_fingerprint: error?.fingerprint ?? null,
  error_provider: error?.provider === undefined ? null : JSON.stringify(error.provider),
  event_count: run.eventCount,
});

/** Most runs have neither culture, parameters nor session: those keep nothing but their messages. */
const contextOf = ({ inputContext: context }: OpenedRun): string | null => {
  if (context === undefined) return null;
  const { culture, parameters, ...more } = context;
  const isPlain = culture === null && Object.values(more).every((member) => member === null || member === undefined);
  return isPlain && Object.keys(parameters).length === 0 ? null : JSON.stringify(context);
};

/** The writes of an executing run, compiled once per process. Null counters: runs do not count against quotas. */
export const createRunJournal = (currency: string | null, counters: RunCounters | null): StoreDefinition<RunJournal> =>
  defineStore(({ db, rows }) => {
    const insertRun = insertStatement(db, 'runs', openRow);
    const insertLabel = insertStatement(
      db,
      'run_labels',
      ({ id, tenantId }: OpenedRun, key: string, value: string) => ({
        tenant_id: tenantId,
        key,
        value,
        run_id: id,
      }),
    );
    const insertInput = insertStatement(db, 'run_inputs', (run: OpenedRun, input: NonNullable<OpenedRun['input']>) =>
      rows.seal('run_inputs', run.tenantId, {
        run_id: run.id,
        messages: JSON.stringify(input),
        context: contextOf(run),
      }),
    );
    const insertSettled = insertStatement(
      db,
      'tool_invocations',
      (entry: ToolCallEntry, settlement: ToolCallSettlement, called: boolean) =>
        rows.seal('tool_invocations', entry.tenantId, {
          ...entryRow(entry, 'Settled'),
          ...settlementRow(entry, settlement),
          called: flag(called),
        }),
      { provenBy: ['run_id', 'id'] },
    );
    const settle = updateStatement(
      db,
      'tool_invocations',
      (entry: ToolCallEntry, settlement: ToolCallSettlement, called: number) => {
        const where = { run_id: entry.runId, id: entry.id };
        const row = rows.seal('tool_invocations', entry.tenantId, { ...settlementRow(entry, settlement), ...where });
        const { run_id: _run, id: _id, ...set } = row;
        return { set: { ...set, called }, where };
      },
      { isRepeatable: true },
    );
    const close = updateStatement(db, 'runs', (run: ClosedRun) => ({
      set: closeRow(run, currency),
      where: { tenant_id: run.tenantId, id: run.id },
    }));
    const begin = updateStatement(
      db,
      'runs',
      (run: OpenedRun) => ({
        set: {
          status: 'Running',
          started_at: run.startedAt,
          agent_version: run.agentVersion,
          agent_saved_at: run.agentSavedAt ?? null,
          model_provider: run.modelProvider,
          model_id: run.modelId,
          is_streaming: flag(run.isStreaming),
        },
        where: { tenant_id: run.tenantId, id: run.id, status: 'Queued' },
      }),
      { mustChange: true },
    );
    const insertEntry = insertStatement(
      db,
      'tool_invocations',
      (entry: ToolCallEntry) => rows.seal('tool_invocations', entry.tenantId, entryRow(entry, 'Pending')),
      { provenBy: ['run_id', 'id'] },
    );
    const { sql: dropStepsSql } = db.deleteFrom('run_steps').where('run_id', '=', '').compile();
    const { sql: countChildSql } = db
      .updateTable('runs')
      .set((eb) => ({ child_run_count: eb('child_run_count', '+', 1) }))
      .where('tenant_id', '=', '')
      .where('id', '=', '')
      .compile();

    /** Null: it counts nowhere, or with its root. */
    const dayOf = ({ id, parentRunId, isCounted, quotaDay }: OpenedRun): string | null =>
      counters === null || parentRunId !== null || isCounted === false ? null : (quotaDay ?? counters.day(id));

    const withInput = (run: OpenedRun, statement: Statement): Statement[] =>
      run.input === null ? [statement] : [statement, insertInput(run, run.input)];

    return {
      opened(run) {
        const day = dayOf(run);
        const statements = withInput(run, insertRun(run, day));
        for (const [key, value] of Object.entries(run.labels ?? {})) statements.push(insertLabel(run, key, value));
        if (run.parentRunId !== null)
          statements.push({ sql: countChildSql, parameters: [1, run.tenantId, run.parentRunId] });
        if (counters !== null && run.isCounted === false) statements.push(...counters.uncounted(run.id));
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
        // Somebody who has closed the row in line has the run from then on.
        const [begun, ...input] = withInput(run, { ...begin(run), isFence: true });
        // An attempt that begins anew finds the input of the first one.
        const once = input.map((statement) => ({ ...statement, sql: `${statement.sql} on conflict do nothing` }));
        return [...(begun === undefined ? [] : [begun]), ...once];
      },
      closed(run) {
        const { id, tenantId, rootRunId, tree } = run;
        const use = quotaUse(run.usage?.totalTokens, run.cost);
        return [close(run), ...(counters?.closed({ id, tenantId, rootRunId, tree, use }) ?? [])];
      },
      open: updateStatement(
        db,
        'runs',
        (tenantId: string, runId: string) => ({
          set: { status: 'Running' },
          where: { tenant_id: tenantId, id: runId, status: 'Running' },
        }),
        { mustChange: true, isRepeatable: true },
      ),
      packed: insertStatement(
        db,
        'run_events',
        (tenantId: string, runId: string, first: number, last: number, events: string) =>
          rows.seal('run_events', tenantId, { run_id: runId, first_sequence: first, last_sequence: last, events }),
        { provenBy: ['run_id', 'first_sequence', 'last_sequence', 'events'] },
      ),
      modelCalls: insertStatement(db, 'run_model_calls', (tenantId: string, runId: string, calls: string) =>
        rows.seal('run_model_calls', tenantId, { run_id: runId, calls }),
      ),
      trace: insertStatement(db, 'run_traces', (trace: Parameters<RunJournal['trace']>[0]) =>
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
      remoteTask: updateStatement(
        db,
        'runs',
        (tenantId: string, runId: string, task: string) => ({
          set: { remote_task: task },
          where: { tenant_id: tenantId, id: runId },
        }),
        { isRepeatable: true },
      ),
      toolPending: (entry) => [insertEntry(entry)],
      toolSettled: (entry, settlement) => [settle(entry, settlement, 1)],
      toolAsked: (entry, settlement) => [settle(entry, settlement, askedCall)],
      toolRefused: (entry, settlement) => [insertSettled(entry, settlement, false)],
      toolAnswered: (entry, settlement) => [insertSettled(entry, settlement, true)],
      toolsUnknown: updateStatement(db, 'tool_invocations', (runId: string) => ({
        set: { state: 'Unknown' },
        where: { run_id: runId, state: 'Pending' },
      })),
      step: insertStatement(
        db,
        'run_steps',
        (tenantId: string, runId: string, sequence: number, content: string) =>
          rows.seal('run_steps', tenantId, { run_id: runId, sequence, content }),
        { provenBy: ['run_id', 'sequence', 'content'] },
      ),
      stepsDropped: (runId) => ({ sql: dropStepsSql, parameters: [runId] }),
    };
  });
