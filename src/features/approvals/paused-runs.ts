import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { isoTimeOrNull } from '../../core/iso-time.ts';
import type { Statement } from '../../db/statement.ts';
import type { ActiveRun, RunPlan } from '../../engine/active-run.ts';
import { storedSavedAt } from '../../engine/compiled-agent.ts';
import type { Pause, WaitingCall } from '../../engine/control/index.ts';
import type { PauseJournal } from '../../engine/lifecycle/index.ts';
import { askedText, type SessionRequestStore } from '../sessions/index.ts';
import type { WebhookEvents } from '../webhooks/index.ts';
import type { ApprovalStore } from './approvals.store.ts';
import { argumentsHash } from './argument-conditions.rules.ts';

export interface PausedRunDeps {
  readonly requests: SessionRequestStore;
  readonly approvals: ApprovalStore;
  readonly events: Pick<WebhookEvents, 'deliveries'>;
  /** What a continuation takes over from its source: attribution, principal, parameters. */
  contextOf(plan: RunPlan): unknown;
  readonly recordToolPayloads: boolean;
  /** False: runs have no rows, and neither have their requests; the answers of the runs alone carry them. */
  readonly recordingEnabled: boolean;
  /** Null: rows of the mailbox do not expire. */
  readonly expiresAfterMs: number | null;
  /** Lane of a continuation whose source was no job. */
  readonly lane: string;
  readonly newId: () => string;
}

/** Whether a caller reads the answer of the run, which then carries the requests. */
const isInBand = ({ plan }: ActiveRun): boolean => plan.job === null;

/** What is stored with the end of a run that waits: its open requests and, for approvals, their rows in the mailbox. */
export const createPauseJournal = (deps: PausedRunDeps): PauseJournal => {
  const { requests, approvals, events, newId } = deps;

  const request = (run: ActiveRun, sessionId: string, waiting: WaitingCall, position: number, now: number) =>
    requests.inserted({
      tenant_id: run.plan.tenantId,
      session_id: sessionId,
      run_id: run.id,
      id: waiting.requestId,
      kind: waiting.kind === 'approval' ? 'Approval' : 'ClientTool',
      tool_call_id: waiting.call.toolCallId,
      tool_name: waiting.call.toolName,
      channel: isInBand(run) ? 'InBand' : 'Mailbox',
      state: 'Open',
      idempotency_key: waiting.idempotencyKey,
      position,
      agent_version: run.plan.agent.version,
      agent_saved_at: storedSavedAt(run.plan.agent),
      asked: waiting.asked === undefined ? null : askedText(waiting.asked.question, waiting.asked.state),
      created_at: now,
    });

  /** A row of the mailbox, and what tells of it. */
  const mailboxRow = (run: ActiveRun, sessionId: string, waiting: WaitingCall, now: number): readonly Statement[] => {
    const id = newId();
    const expiresAt = deps.expiresAfterMs === null ? null : now + deps.expiresAfterMs;
    const row = approvals.inserted({
      id,
      tenant_id: run.plan.tenantId,
      run_id: run.id,
      agent_name: run.plan.agent.name,
      session_id: sessionId,
      request_id: waiting.requestId,
      tool_call_id: waiting.call.toolCallId,
      tool_name: waiting.call.toolName,
      in_band: isInBand(run) ? 1 : 0,
      arguments: deps.recordToolPayloads ? canonicalJson(waiting.arguments) : null,
      arguments_hash: argumentsHash(waiting.arguments),
      presentation: waiting.presentation === null ? null : JSON.stringify(waiting.presentation),
      status: 'Pending',
      decided_by: null,
      decided_at: null,
      reason: null,
      expires_at: expiresAt,
      created_at: now,
    });
    const { tenantId, agent } = run.plan;
    const told = {
      approvalId: id,
      requestId: waiting.requestId,
      runId: run.id,
      sessionId,
      agentName: agent.name,
      toolName: waiting.call.toolName,
      inBand: isInBand(run),
      expiresAt: isoTimeOrNull(expiresAt),
    };
    return [row, ...events.deliveries(tenantId, 'approval.pending', now, told)];
  };

  const handover = (run: ActiveRun, sessionId: string, now: number): Statement =>
    approvals.handoverInserted({
      run_id: run.id,
      tenant_id: run.plan.tenantId,
      session_id: sessionId,
      agent_name: run.plan.agent.name,
      agent_version: run.plan.agent.version,
      // Fixed here, so that no repeat of a decision can start a second run.
      continuation_run_id: newId(),
      lane: run.plan.job?.lane ?? deps.lane,
      context: JSON.stringify(deps.contextOf(run.plan)),
      state: 'Waiting',
      version: 0,
      created_at: now,
    });

  return {
    opened(run: ActiveRun, pause: Pause, now: number) {
      const sessionId = run.session?.sessionId;
      if (sessionId === undefined) throw new Error('A run without a session cannot wait.');
      const rows = pause.calls.map((waiting, position) => request(run, sessionId, waiting, position, now));
      if (!deps.recordingEnabled || pause.status !== 'AwaitingApproval') return rows;
      return [
        ...rows,
        ...pause.calls.flatMap((waiting) => mailboxRow(run, sessionId, waiting, now)),
        handover(run, sessionId, now),
      ];
    },
  };
};
