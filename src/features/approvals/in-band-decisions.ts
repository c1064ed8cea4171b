import type { Json } from '../../contract/schema.ts';
import type { ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { CallContext } from '../../core/context.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRequestRow } from '../../db/tables/approvals.ts';
import type { OpenCall } from '../../engine/context/index.ts';
import {
  answeredCalls,
  type Mailbox,
  refusedPart,
  rejection,
  responseMessage,
  type SessionRequestStore,
} from '../sessions/index.ts';
import type { ApprovalMetrics } from './approval-metrics.ts';
import type { ApprovalRuleStore, StandingRule } from './approval-rules.store.ts';
import { argumentsHash } from './argument-conditions.rules.ts';
import { notStored } from './decision-failure.ts';
import type { StandingRules } from './standing-rules.service.ts';

export interface InBandDecisionDeps {
  readonly storage: Storage;
  readonly requests: SessionRequestStore;
  readonly rules: StandingRules;
  readonly ruleStore: ApprovalRuleStore;
  readonly audit: AuditTrail;
  readonly metrics: ApprovalMetrics;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Stores what a caller decides in the session's next run, with the entries and the rules to remember, in one unit. */
export const createInBandDecisions = (deps: InBandDecisionDeps): Mailbox['decide'] => {
  const { storage, requests, rules, ruleStore, audit, metrics, now, newId } = deps;

  const remembered = async (
    context: CallContext,
    agentName: string,
    calls: readonly OpenCall[],
    open: readonly SessionRequestRow[],
    decisions: readonly ToolApprovalDecision[],
  ): Promise<{ rules: StandingRule[]; entries: AuditEntry[] }> => {
    const found = { rules: [] as StandingRule[], entries: [] as AuditEntry[] };
    const seen = new Set<string>();
    for (const decision of decisions) {
      const row = open.find(({ id }) => id === decision.requestId);
      const call = calls.find((entry) => entry.call.toolCallId === row?.tool_call_id);
      if (decision.remember !== true || row === undefined || call === undefined) continue;
      const hash = decision.rememberArgumentsOnly === true ? argumentsHash(JSON.parse(call.call.input) as Json) : null;
      if (seen.has(`${row.tool_name}\n${hash}`)) continue;
      seen.add(`${row.tool_name}\n${hash}`);
      const made = await rules.toRemember({
        tenantId: context.tenantId,
        agentName,
        toolName: row.tool_name,
        argumentsHash: hash,
        argumentConditions: [],
        createdBy: context.principal.actor,
        createdAt: now(),
      });
      if (made === null) continue;
      found.rules.push(made.rule);
      found.entries.push(made.entry);
    }
    return found;
  };

  return async ({ context, runId, agentName, session }, open, decisions) => {
    const decisionOf = new Map(decisions.map((decision) => [decision.requestId, decision]));
    const calls = answeredCalls(session, open, (row) => {
      const decision = decisionOf.get(row.id);
      const name = { toolCallId: row.tool_call_id, toolName: row.tool_name };
      return decision?.approved === true ? 'approved' : refusedPart(name, rejection(decision?.reason));
    });
    const entries = open.map((row): AuditEntry => {
      const call = calls.find((entry) => entry.call.toolCallId === row.tool_call_id);
      return {
        tenantId: context.tenantId,
        actor: context.principal.actor,
        action: 'approval.decide',
        entity: `run:${runId}`,
        before: null,
        after: {
          requestId: row.id,
          decision: decisionOf.get(row.id)?.approved === true ? 'Approved' : 'Rejected',
          toolName: row.tool_name,
          argumentsHash: argumentsHash(JSON.parse(call?.call.input ?? '{}') as Json),
        },
      };
    });
    const store = async (): Promise<void> => {
      const remember = await remembered(context, agentName, calls, open, decisions);
      const writes: Statement[] = [
        ...open.map((row) => requests.answered(row)),
        ...remember.rules.map((rule) => ruleStore.inserted(rule)),
      ];
      await audit.record([...entries, ...remember.entries], writes);
      if (remember.rules.length > 0) rules.changed(context.tenantId);
    };
    await store()
      .catch((error: unknown) => {
        // Another caller stored an equal rule in the same moment: the second look finds it.
        if (storage.dialect.classify(error) === 'unique-violation') return store();
        throw error;
      })
      .catch(notStored);
    for (const row of open)
      metrics.decided(row, decisionOf.get(row.id)?.approved === true ? 'Approved' : 'Rejected', 'in_band', now());
    const given = decisions.map(({ requestId, approved, reason }) => ({ requestId, approved, reason: reason ?? null }));
    return { messages: [responseMessage({ messageId: newId(), at: now() }, runId, given)], calls, earlier: null };
  };
};
