import type { OperationAudit } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { CallContext } from '../../core/context.ts';
import type { ApprovalHandoverRow, ApprovalRow, SessionRequestRow } from '../../db/tables/approvals.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { OpenCall } from '../../engine/context/index.ts';
import type { AuditLog, TellChange } from '../audit/index.ts';
import {
  answeredCalls,
  type Mailbox,
  refusedPart,
  rejection,
  responseMessage,
  sessionRequestStore,
} from '../sessions/index.ts';
import { expiredCall, isLapsed, notStored } from './approval-decisions.ts';
import type { ApprovalMetrics } from './approval-metrics.ts';
import { approvalOperations } from './approvals.operations.ts';
import { type ApprovalStore, approvalStore, type DecisionRow } from './approvals.store.ts';
import { argumentsHash } from './argument-conditions.rules.ts';
import type { StandingRules } from './standing-rules.service.ts';

export interface InBandDecisionDeps {
  readonly store: Pick<ApprovalStore, 'handover' | 'ofRun'>;
  readonly rules: StandingRules;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly metrics: ApprovalMetrics;
  /** A reason as the guards let it be stored. Throws `content-blocked`. */
  inspect(context: CallContext, reason: string, row: ApprovalRow): Promise<string>;
  /** Of a session of which nothing in the mailbox waits. */
  voidOpen(tenantId: string, sessionId: string): Promise<void>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** The audit entry of a decision that a run brings names the run. */
const decisionInRun: OperationAudit = { ...approvalOperations.decide.audit, entity: 'run' };

// A reader of the row, and the audit trail, give the reason why the call was not approved.
const overtakenReason = 'The conversation went on with another message.';

/** A paused run with its rows in the mailbox. A run of an earlier version, or one that is not recorded, has none. */
interface StoredPause {
  readonly handover: ApprovalHandoverRow;
  readonly rows: readonly ApprovalRow[];
}

/** Stores what the session's next run decides, or that its message leaves undecided, in one transaction with the mailbox. */
export const createInBandDecisions = (deps: InBandDecisionDeps): Pick<Mailbox, 'decide' | 'overtake'> => {
  const { rules, audit, metrics, store, now, newId } = deps;

  const remember = async (
    stores: UnitOfWork,
    tell: TellChange,
    { tenantId, principal }: CallContext,
    agentName: string,
    calls: readonly OpenCall[],
    open: readonly SessionRequestRow[],
    decisions: readonly ToolApprovalDecision[],
  ): Promise<void> => {
    for (const decision of decisions) {
      const row = open.find(({ id }) => id === decision.requestId);
      const call = calls.find((entry) => entry.call.toolCallId === row?.tool_call_id);
      if (decision.remember !== true || row === undefined || call === undefined) continue;
      const { input } = call.call;
      await rules.remember(stores, tell, {
        tenantId,
        agentName,
        toolName: row.tool_name,
        argumentsHash: decision.rememberArgumentsOnly === true ? argumentsHash(JSON.parse(input) as Json) : null,
        argumentConditions: [],
        createdBy: principal.actor,
        createdAt: now(),
      });
    }
  };

  const pausesOf = async (open: readonly SessionRequestRow[]): Promise<readonly StoredPause[]> => {
    const pauses: StoredPause[] = [];
    for (const runId of new Set(open.map((row) => row.run_id))) {
      // Read before the rows: whatever changes them afterwards changes its version too.
      const handover = await store.handover(runId);
      if (handover !== undefined) pauses.push({ handover, rows: await store.ofRun(runId) });
    }
    return pauses;
  };

  return {
    async decide({ context, runId, agentName, session }, open, decisions) {
      const { tenantId, principal } = context;
      const decisionOf = new Map(decisions.map((decision) => [decision.requestId, decision]));
      const calls = answeredCalls(session, open, (row) => {
        const decision = decisionOf.get(row.id);
        const name = { toolCallId: row.tool_call_id, toolName: row.tool_name };
        return decision?.approved === true ? 'approved' : refusedPart(name, rejection(decision?.reason));
      });
      const outcomeOf = (requestId: string) =>
        decisionOf.get(requestId)?.approved === true ? ('Approved' as const) : ('Rejected' as const);
      const pauses = await pausesOf(open);
      const reasons = new Map<string, string | null>();
      for (const row of pauses.flatMap(({ rows }) => rows)) {
        const reason = decisionOf.get(row.request_id)?.reason?.trim() ?? '';
        reasons.set(row.request_id, reason === '' ? null : await deps.inspect(context, reason, row));
      }
      const decidedAt = now();
      await audit
        .change({ tenantId, principal, audit: decisionInRun }, async (stores, tell) => {
          const approvals = stores(approvalStore);
          await stores(sessionRequestStore).answer(open);
          for (const { handover, rows } of pauses) {
            for (const { id, request_id: requestId } of rows)
              await approvals.decide(tenantId, id, {
                status: outcomeOf(requestId),
                decidedBy: principal.actor,
                decidedAt,
                reason: reasons.get(requestId) ?? null,
              });
            await approvals.moveHandover(handover, 'Answered', runId);
          }
          for (const row of open) {
            const call = calls.find((entry) => entry.call.toolCallId === row.tool_call_id);
            const hash = argumentsHash(JSON.parse(call?.call.input ?? '{}') as Json);
            const after = { decision: outcomeOf(row.id), toolName: row.tool_name, argumentsHash: hash };
            tell({ id: runId, before: null, after: { requestId: row.id, ...after } });
          }
          await remember(stores, tell, context, agentName, calls, open, decisions);
        })
        .catch(notStored);
      if (decisions.some((decision) => decision.remember === true)) rules.changed(tenantId);
      for (const row of open) metrics.decided(row, outcomeOf(row.id), 'in_band', decidedAt);
      const answers = decisions.map(({ requestId, approved, reason }) => ({
        requestId,
        approved,
        reason: reason ?? null,
      }));
      return { messages: [responseMessage({ messageId: newId(), at: now() }, runId, answers)], calls, earlier: null };
    },

    async overtake({ tenantId, sessionId, runId, principal }, open) {
      const decidedAt = now();
      const pauses = (await pausesOf(open)).flatMap(({ handover, rows }) => {
        const waiting = rows.filter(({ status }) => status === 'Pending');
        const rejected = waiting.filter((row) => !isLapsed(row, decidedAt));
        const lapsed = waiting.filter((row) => isLapsed(row, decidedAt));
        return waiting.length === 0 ? [] : [{ handover, rejected, lapsed }];
      });
      if (pauses.length === 0) return deps.voidOpen(tenantId, sessionId);
      const decision: DecisionRow = {
        status: 'Rejected',
        decidedBy: principal.actor,
        decidedAt,
        reason: overtakenReason,
      };
      const by = { tenantId, principal, audit: decisionInRun };
      await audit
        .change(by, async (stores, tell) => {
          const approvals = stores(approvalStore);
          await stores(sessionRequestStore).voidOpen(tenantId, sessionId);
          for (const { handover, rejected, lapsed } of pauses) {
            for (const row of rejected) {
              await approvals.decide(tenantId, row.id, decision);
              const after = { decision: decision.status, toolName: row.tool_name, argumentsHash: row.arguments_hash };
              tell({ id: runId, before: null, after: { requestId: row.request_id, ...after } });
            }
            for (const row of lapsed) {
              await approvals.expire(tenantId, row.id);
              tell(...expiredCall(row));
            }
            if (rejected.length > 0) await approvals.moveHandover(handover, 'Answered', runId);
            else await approvals.moveHandover(handover, 'Lapsed');
          }
        })
        .catch(notStored);
      for (const { rejected, lapsed } of pauses) {
        for (const row of rejected) metrics.decided(row, decision.status, 'in_band', decidedAt);
        for (const row of lapsed) metrics.expired(row);
      }
    },
  };
};
