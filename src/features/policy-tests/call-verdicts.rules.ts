import type { Json } from '../../contract/schema.ts';
import { argumentsHash, ruleMatches, type StandingRule } from '../approvals/index.ts';
import type { CallVerdict, RuleDocument } from './policy-tests.schema.ts';

type Rule = Pick<StandingRule, 'agentName' | 'toolName' | 'argumentsHash' | 'argumentConditions' | 'createdAt'>;

/** A call as it was recorded. */
export interface PastCall {
  readonly agentName: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** Undefined: not recorded whole. */
  readonly args: Json | undefined;
  readonly truncated: boolean;
  /** Epoch milliseconds. */
  readonly at: number;
  /** It was put to a person. */
  readonly wasAsked: boolean;
}

export interface JudgedCall {
  readonly verdict: CallVerdict;
  /** The rule of the document that approves it. */
  readonly ruleIndex: number | null;
}

const noRule = -1;

const concerns = (rule: Rule, { agentName, toolName, at }: PastCall): boolean =>
  rule.toolName === toolName && rule.createdAt <= at && (rule.agentName === null || rule.agentName === agentName);

const isFree = (rule: Rule): boolean => rule.argumentsHash === null && rule.argumentConditions.length === 0;

/** Index of the first rule that approves the call; -1: none, null: its arguments decide and are not known. */
const approving = (rules: readonly Rule[], call: PastCall): number | null => {
  const { args } = call;
  const matches = (rule: Rule): boolean =>
    isFree(rule) || (args !== undefined && ruleMatches(rule, args, () => argumentsHash(args)));
  const index = rules.findIndex((rule) => concerns(rule, call) && matches(rule));
  if (index !== noRule || args !== undefined) return index;
  return rules.some((rule) => concerns(rule, call)) ? null : noRule;
};

/** Says of past calls what a document of rules makes of them; null: what was recorded of the call does not say. */
export const createCallJudge = (
  { rules = [], requireApproval = [], replaceStored = false }: RuleDocument,
  stored: readonly Rule[],
): ((call: PastCall) => JudgedCall | null) => {
  const own = rules.map((rule): Rule => {
    const agentName = rule.agentName ?? '';
    return {
      agentName: agentName === '' ? null : agentName,
      toolName: rule.toolName,
      argumentsHash: null,
      argumentConditions: rule.argumentConditions ?? [],
      createdAt: 0,
    };
  });
  const mustAsk = new Set(requireApproval);

  const ofAsked = (call: PastCall): JudgedCall | null => {
    const ruleIndex = approving(own, call);
    if (ruleIndex === null) return null;
    return ruleIndex === noRule ? { verdict: 'StillAsked', ruleIndex: null } : { verdict: 'WouldApprove', ruleIndex };
  };

  /** What ran unasked: only a tool that must ask from now on, or a rule that is gone, changes it. */
  const ofUnasked = (call: PastCall): JudgedCall | null => {
    const unchanged: JudgedCall = { verdict: 'Unchanged', ruleIndex: null };
    const before = approving(stored, call);
    if (!mustAsk.has(call.toolName) && !(replaceStored && before !== noRule)) return unchanged;
    const after = approving(replaceStored ? own : [...own, ...stored], call);
    // Without the arguments, the removed rule may not have approved the call at all.
    if (after === null || (before === null && !mustAsk.has(call.toolName))) return null;
    return after === noRule ? { verdict: 'WouldAsk', ruleIndex: null } : unchanged;
  };

  return (call) => (call.wasAsked ? ofAsked(call) : ofUnasked(call));
};
