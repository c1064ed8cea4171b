import { isoTime } from '../../core/iso-time.ts';
import type { Statement } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';
import type { RunOutcome } from '../../engine/active-run.ts';
import type { RunEnds } from '../../engine/lifecycle/index.ts';
import { decimal } from '../../engine/pricing.ts';
import type { StoredRunError } from '../../engine/run-failure.ts';
import type { WebhookEvents } from '../webhooks/index.ts';

/** A root run at its end. Times are epoch milliseconds. */
interface EndedRun {
  readonly id: string;
  readonly tenantId: string;
  readonly kind: string;
  readonly name: string;
  readonly version: number | null;
  readonly sessionId: string | null;
  readonly modelProvider: string | null;
  readonly modelId: string | null;
  /** Null: it never began. */
  readonly startedAt: number | null;
  readonly completedAt: number;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly costMicros: number | null;
}

type End = Pick<RunOutcome, 'status'> & { readonly error: Pick<StoredRunError, 'class' | 'type'> | null };

export interface PublishedRunEnds extends RunEnds {
  /** The same for a run that no engine executes. */
  closingDetached(run: EndedRun, end: End): readonly Statement[];
  closedDetached(written: readonly Statement[]): void;
}

const none: readonly Statement[] = [];
const typeOf = { Completed: 'run.completed', Failed: 'run.failed', Canceled: 'run.canceled' } as const;

/** Null: one that goes on, or that waits, which what it waits for announces. */
const eventOf = (status: RunOutcome['status']) =>
  status === 'Completed' || status === 'Failed' || status === 'Canceled' ? typeOf[status] : null;

const isPublished = (kind: string): boolean => kind === 'Agent' || kind === 'Workflow';

/** A row as it is closed now. */
export const endedRow = (row: RunRow, completedAt: number): EndedRun => ({
  id: row.id,
  tenantId: row.tenant_id,
  kind: row.kind,
  name: row.agent_name,
  version: row.agent_version,
  sessionId: row.session_id,
  modelProvider: row.model_provider,
  modelId: row.model_id,
  startedAt: row.started_at,
  completedAt,
  inputTokens: row.input_tokens,
  outputTokens: row.output_tokens,
  costMicros: row.total_cost_micros,
});

/** Publishes how root runs of agents and workflows end; those of evaluations are told by their suites. */
export const createRunEnds = (events: WebhookEvents, currency: string | null): PublishedRunEnds => {
  const summary = (run: EndedRun, { status, error }: End, isIncomplete: boolean): Readonly<Record<string, unknown>> => {
    const startedAt = run.startedAt ?? run.completedAt;
    const isAgent = run.kind === 'Agent';
    return {
      runId: run.id,
      kind: run.kind,
      agentName: isAgent ? run.name : null,
      workflowName: isAgent ? null : run.name,
      agentVersion: run.version,
      sessionId: run.sessionId,
      status,
      modelProvider: run.modelProvider,
      modelId: run.modelId,
      startedAt: isoTime(startedAt),
      completedAt: isoTime(run.completedAt),
      durationMs: run.completedAt - startedAt,
      inputTokens: run.inputTokens,
      outputTokens: run.outputTokens,
      cost: decimal(run.costMicros),
      currency: run.costMicros === null ? null : currency,
      errorClass: error?.class ?? null,
      errorType: error?.type ?? null,
      ...(isIncomplete ? { warnings: ['recording-incomplete'] } : {}),
    };
  };
  return {
    current: events.current,
    closing(run, end, at, isIncomplete) {
      const { plan } = run;
      const type = eventOf(end.status);
      if (type === null || plan.parent !== null || !isPublished(plan.kind) || !events.hears(plan.tenantId, type))
        return none;
      const ended: EndedRun = {
        id: plan.id,
        tenantId: plan.tenantId,
        kind: plan.kind,
        name: plan.agent.name,
        version: plan.agent.version,
        sessionId: plan.sessionId,
        modelProvider: run.target.provider.name,
        modelId: run.target.model,
        startedAt: run.startedAt,
        completedAt: at,
        inputTokens: run.usage.inputTokens,
        outputTokens: run.usage.outputTokens,
        costMicros: run.cost?.total ?? null,
      };
      return events.deliveries(plan.tenantId, type, at, summary(ended, end, isIncomplete));
    },
    closed({ plan }, status) {
      if (plan.parent !== null) return;
      const type = eventOf(status) ?? (status === 'AwaitingApproval' ? 'approval.pending' : null);
      if (type !== null && events.hears(plan.tenantId, type)) events.committed();
    },
    closingDetached(run, end) {
      const type = eventOf(end.status);
      if (type === null || !isPublished(run.kind) || !events.hears(run.tenantId, type)) return none;
      return events.deliveries(run.tenantId, type, run.completedAt, summary(run, end, false));
    },
    closedDetached(written) {
      if (written.length > 0) events.committed();
    },
  };
};
