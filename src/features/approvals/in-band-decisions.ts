import type { OperationAudit } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { CallContext } from '../../core/context.ts';
import type { SessionRequestRow } from '../../db/tables/approvals.ts';
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
import { notStored } from './approval-decisions.ts';
import type { ApprovalMetrics } from './approval-metrics.ts';
import { approvalOperations } from './approvals.operations.ts';
import { argumentsHash } from './argument-conditions.rules.ts';
import type { StandingRules } from './standing-rules.service.ts';

export interface InBandDecisionDeps {
  readonly rules: StandingRules;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly metrics: ApprovalMetrics;
  readonly now: () => number;
  readonly newId: () => string;
}

/** A decision that a run brings is told of the run: the call has no row of its own. */
const decisionInRun: OperationAudit = { ...approvalOperations.decide.audit, entity: 'run' };

/** Stores what a caller decides in the session's next run, with the entries and the rules to remember, in one unit. */
export const createInBandDecisions = (deps: InBandDecisionDeps): Mailbox['decide'] => {
  const { rules, audit, metrics, now, newId } = deps;

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

  return async ({ context, runId, agentName, session }, open, decisions) => {
    const { tenantId, principal } = context;
    const decisionOf = new Map(decisions.map((decision) => [decision.requestId, decision]));
    const calls = answeredCalls(session, open, (row) => {
      const decision = decisionOf.get(row.id);
      const name = { toolCallId: row.tool_call_id, toolName: row.tool_name };
      return decision?.approved === true ? 'approved' : refusedPart(name, rejection(decision?.reason));
    });
    const outcomeOf = (row: SessionRequestRow) =>
      decisionOf.get(row.id)?.approved === true ? ('Approved' as const) : ('Rejected' as const);
    await audit
      .change({ tenantId, principal, audit: decisionInRun }, async (stores, tell) => {
        await stores(sessionRequestStore).answer(open);
        for (const row of open) {
          const call = calls.find((entry) => entry.call.toolCallId === row.tool_call_id);
          const hash = argumentsHash(JSON.parse(call?.call.input ?? '{}') as Json);
          const after = { decision: outcomeOf(row), toolName: row.tool_name, argumentsHash: hash };
          tell({ id: runId, before: null, after: { requestId: row.id, ...after } });
        }
        await remember(stores, tell, context, agentName, calls, open, decisions);
      })
      .catch(notStored);
    if (decisions.some((decision) => decision.remember === true)) rules.changed(tenantId);
    for (const row of open) metrics.decided(row, outcomeOf(row), 'in_band', now());
    const answers = decisions.map(({ requestId, approved, reason }) => ({
      requestId,
      approved,
      reason: reason ?? null,
    }));
    return { messages: [responseMessage({ messageId: newId(), at: now() }, runId, answers)], calls, earlier: null };
  };
};
