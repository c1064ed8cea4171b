import type { Json } from '../../contract/schema.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';
import type { ApprovalRuleStore } from '../approvals/index.ts';
import { createCallJudge, type PastCall } from './call-verdicts.rules.ts';
import { cappedList, groups } from './capped-list.ts';
import type { Gaps } from './gaps.ts';
import type { HistoryStore } from './history.store.ts';
import { createBreather, type HistoryScope, type PolicyOutcome, walkEvents, walkHistory } from './history-walk.ts';
import type { RuleDocument, RuleFindings } from './policy-tests.schema.ts';
import { jsonIn } from './recorded-texts.ts';

export interface RuleTestDeps {
  readonly store: HistoryStore;
  readonly rules: Pick<ApprovalRuleStore, 'list'>;
}

const madeCall = ({ agent_name: agentName }: RunRow, call: ToolInvocationRow): PastCall => {
  // The mark covers arguments and result, and perhaps only the result was cut: cut arguments are not JSON. Malformed ones
  // of a model never reached a rule.
  const args = call.arguments === null ? undefined : jsonIn(call.arguments);
  const { tool_call_id: toolCallId, tool_name: toolName, created_at: at } = call;
  return { agentName, toolCallId, toolName, args, truncated: call.truncated === 1, at, wasAsked: false };
};

type Members = Readonly<Record<string, unknown>>;

const askedCall = ({ agent_name: agentName }: RunRow, at: number, members: Members): PastCall => {
  const truncated = members['truncated'] === true;
  const args = truncated || members['arguments'] === null ? undefined : (members['arguments'] as Json);
  const { toolCallId, toolName } = members;
  return {
    agentName,
    toolCallId: String(toolCallId),
    toolName: String(toolName),
    args,
    truncated,
    at,
    wasAsked: true,
  };
};

/** Calls that a run put to a person, as its log has them; the run waits, so its log has nothing after them. */
const askedBy = async (store: HistoryStore, row: RunRow): Promise<{ calls: PastCall[]; isWhole: boolean }> => {
  const calls: PastCall[] = [];
  let events = 0;
  for await (const pack of walkEvents(store, row)) {
    const entries = JSON.parse(pack.events) as [string, number, Members][];
    events += entries.length;
    for (const [type, at, members] of entries)
      if (type === 'approval.requested') calls.push(askedCall(row, at, members));
  }
  return { calls, isWhole: events > 0 && events >= row.event_count };
};

const counterOf = {
  WouldApprove: 'wouldApprove',
  WouldAsk: 'wouldAsk',
  StillAsked: 'stillAsked',
  Unchanged: 'unchanged',
} as const;

/** Puts recorded calls to the rules of a document: which would have asked, and which no more. */
export const testRules = async (
  { store, rules }: RuleTestDeps,
  scope: HistoryScope,
  document: RuleDocument,
  gaps: Gaps,
): Promise<PolicyOutcome<RuleFindings>> => {
  const judge = createCallJudge(document, await rules.list(scope.tenantId));
  const calls = cappedList<RuleFindings['calls'][number]>(scope.take);
  const none = () => ({ wouldApprove: 0, wouldAsk: 0, stillAsked: 0, unchanged: 0 });
  const total = none();
  const byTool = groups((toolName) => ({ toolName, ...none() }));
  const counts = { runs: 0, calls: 0 };

  const look = (row: RunRow, call: PastCall): void => {
    counts.calls += 1;
    const judged = judge(call);
    if (judged === null) {
      gaps.add(row.id, 'ToolArguments', call.truncated ? 'Truncated' : 'NotStored');
      return;
    }
    const { verdict, ruleIndex } = judged;
    total[counterOf[verdict]] += 1;
    byTool.of(call.toolName)[counterOf[verdict]] += 1;
    if (verdict !== 'WouldApprove' && verdict !== 'WouldAsk') return;
    const { toolCallId, toolName } = call;
    calls.add({ runId: row.id, agentName: row.agent_name, toolCallId, toolName, verdict, ruleIndex });
  };

  const lookAtAsked = async (row: RunRow): Promise<void> => {
    const waiting = await askedBy(store, row);
    if (!waiting.isWhole) gaps.add(row.id, 'Events', 'NotStored');
    for (const call of waiting.calls) look(row, call);
  };

  const breathe = createBreather();
  for await (const rows of walkHistory(store, scope)) {
    const ids = rows.map(({ id }) => id);
    const made = await store.toolCalls(scope.tenantId, ids);
    const sessions = new Set(rows.flatMap((row) => (made.has(row.id) ? [row.session_id ?? ''] : [])));
    sessions.delete('');
    const asked = await store.askedCalls(scope.tenantId, [...sessions]);
    for (const row of rows) {
      counts.runs += 1;
      if (row.status === 'AwaitingApproval') await lookAtAsked(row);
      // What was approved first is judged where it was asked.
      for (const call of made.get(row.id) ?? [])
        if (!asked.has(`${row.session_id ?? ''}\n${call.tool_call_id}`)) look(row, madeCall(row, call));
      await breathe();
    }
  }
  return {
    runsExamined: counts.runs,
    matches: total.wouldApprove + total.wouldAsk,
    findings: {
      callsExamined: counts.calls,
      ...total,
      byTool: [...byTool.all],
      calls: [...calls.items],
      callsOmitted: calls.omitted,
    },
  };
};
