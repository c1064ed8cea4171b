import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { RunRow } from '../../db/tables.ts';
import { publicMessage } from '../../engine/context/index.ts';
import type { RunAccess } from './run-access.ts';
import { toRunRecord } from './run-record.ts';
import type { RunTraceStore } from './run-traces.store.ts';
import type { runOperations } from './runs.operations.ts';
import type { RunComparisonSide } from './runs.schema.ts';
import type { RunStore } from './runs.store.ts';

export interface RunReadingDeps {
  readonly store: Pick<RunStore, 'recordedInput' | 'output' | 'countToolCalls'>;
  readonly access: RunAccess;
  readonly traces: RunTraceStore;
  /** Scores of a run, newest first. */
  readonly scoresOf: (tenantId: string, runId: string) => Promise<RunComparisonSide['scores']>;
  readonly recording: { readonly recordReasoningDeltas: boolean };
}

/** What is read of a run beside its record and its log. */
export const runReading = (
  deps: RunReadingDeps,
): Pick<Handlers<typeof runOperations>, 'input' | 'compare' | 'trace'> => {
  const { store, access } = deps;

  const side = async (tenantId: string, row: RunRow): Promise<RunComparisonSide> => {
    const [output, toolCallCount, scores] = await Promise.all([
      store.output(row.tenant_id, row.id),
      store.countToolCalls(tenantId, row.id),
      deps.scoresOf(tenantId, row.id),
    ]);
    const record = toRunRecord(row, []);
    return {
      runId: record.id,
      agentName: record.agentName,
      agentVersion: record.agentVersion,
      modelProvider: record.modelProvider,
      modelId: record.modelId,
      status: record.status,
      durationMs: record.durationMs,
      usage: record.usage,
      cost: record.cost,
      toolCallCount,
      errorClass: record.error?.class ?? null,
      errorMessage: record.error?.message ?? null,
      replayOfRunId: record.replayOfRunId,
      output,
      scores,
      ...(record.warnings === undefined ? {} : { warnings: record.warnings }),
    };
  };

  return {
    async input(context, { params }) {
      const row = await access.find(context, params.runId);
      const input = await store.recordedInput(row.tenant_id, row.id);
      if (input === null)
        throw new AcpError('run-input-not-recorded', `The input of run ${row.id} was not recorded, or was removed.`);
      return ok({
        runId: row.id,
        createdAt: isoTime(row.created_at),
        messages: input.messages.map((message) => publicMessage(message, null, deps.recording)),
        ...(input.context.resources === undefined ? {} : { resources: [...input.context.resources] }),
      });
    },
    async trace(context, { params }) {
      const row = await access.find(context, params.runId);
      const trace = await deps.traces.get(context.tenantId, row.root_run_id ?? row.id);
      if (trace === null)
        throw new AcpError(
          'trace-not-found',
          `There is no trace of run ${row.id}: it is in progress, was not sampled, or was removed.`,
        );
      return ok(trace);
    },
    async compare(context, { params }) {
      const [a, b] = [await access.find(context, params.a), await access.find(context, params.b)];
      const { tenantId } = context;
      const [left, right] = await Promise.all([side(tenantId, a), side(tenantId, b)]);
      return ok({ left, right });
    },
  };
};
