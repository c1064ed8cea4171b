import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { Json } from '../../contract/schema.ts';
import type { ToolApprovalDecision } from '../../contract/tool-approval.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { CallContext } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRequestRow } from '../../db/tables/approvals.ts';
import type { ChatMessage, ContentPart, OpenCall, TurnResume } from '../../engine/context/index.ts';
import type { SessionTurn } from '../../engine/record/index.ts';
import type { ApprovalMetrics } from './approval-metrics.ts';
import type { ApprovalRuleStore, StandingRule } from './approval-rules.store.ts';
import { argumentsHash } from './argument-conditions.rules.ts';
import { notStored } from './decision-failure.ts';
import { answeredCalls, refusedPart, rejection } from './open-calls.rules.ts';
import type { SessionRequestStore } from './session-requests.store.ts';
import type { StandingRules } from './standing-rules.service.ts';

export interface InBandAnswerDeps {
  readonly storage: Storage;
  readonly requests: SessionRequestStore;
  readonly rules: StandingRules;
  readonly ruleStore: ApprovalRuleStore;
  readonly audit: AuditTrail;
  readonly metrics: ApprovalMetrics;
  readonly now: () => number;
  readonly newId: () => string;
}

/** The run that brings answers, and the session as it is locked for it. */
export interface AnsweringRun {
  readonly context: CallContext;
  readonly runId: string;
  readonly agentName: string;
  readonly session: SessionTurn;
}

/** Stores what a caller answers in the session's next run; each fails with ConditionFailedError when another came first. */
export interface InBandAnswers {
  /** With the entries and the rules to remember, in one unit. */
  decide(
    run: AnsweringRun,
    open: readonly SessionRequestRow[],
    decisions: readonly ToolApprovalDecision[],
  ): Promise<TurnResume>;
  takeResults(
    session: SessionTurn,
    open: readonly SessionRequestRow[],
    results: NonNullable<AgentRunRequest['toolResults']>,
  ): Promise<TurnResume>;
}

/** What the history keeps of the decisions. */
export const responseMessage = (
  made: { readonly messageId: string; readonly at: number },
  runId: string,
  decisions: readonly { requestId: string; approved: boolean; reason: string | null }[],
): ChatMessage => ({
  messageId: made.messageId,
  role: 'User',
  runId,
  createdAt: isoTime(made.at),
  interrupted: false,
  contents: decisions.map((decision): ContentPart => ({ type: 'ApprovalResponse', ...decision })),
});

export const createInBandAnswers = (deps: InBandAnswerDeps): InBandAnswers => {
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

  const decide: InBandAnswers['decide'] = async ({ context, runId, agentName, session }, open, decisions) => {
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

  const takeResults: InBandAnswers['takeResults'] = async (session, open, results) => {
    const resultOf = new Map(results.map((result) => [result.callId, result]));
    const calls = answeredCalls(session, open, (row) => {
      const { result = null, errorMessage = null } = resultOf.get(row.id) ?? {};
      return { type: 'ClientResult', result, errorMessage };
    });
    await storage.write(open.map((row) => requests.answered(row)));
    return { messages: [], calls, earlier: null };
  };

  return { decide, takeResults };
};
