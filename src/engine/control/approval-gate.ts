import type { Json } from '../../contract/schema.ts';
import { cutText, withDeadline } from '../tools/index.ts';

/** A tool call that somebody has to decide about. */
export interface ApprovalCall {
  readonly tenantId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string | null;
  readonly userId: string | null;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, Json>>;
}

export type ApprovalPolicyAnswer = 'Required' | 'NotRequired' | 'Undecided';

/** Asked for every call, before any rule. Throwing, or taking more than 5 s, counts as `Required`. */
export interface ApprovalPolicy {
  decide(call: ApprovalCall): Promise<ApprovalPolicyAnswer>;
}

/** What a person reads who decides about a call. */
export interface ToolApprovalPresentation {
  /** At most 128 characters. */
  readonly entityType: string | null;
  /** At most 256 characters, from the arguments. */
  readonly entityId: string | null;
  /** At most 256 characters, looked up by the presenter. */
  readonly entityName: string | null;
  /** One sentence, at most 1000 characters. */
  readonly message: string | null;
}

/** Makes the presentation of one tool's calls. When it throws or takes more than 2 s, there is none. */
export interface ApprovalPresenter {
  readonly toolName: string;
  present(call: ApprovalCall, signal: AbortSignal): Promise<ToolApprovalPresentation | null>;
}

/** Why a call runs unasked, or that a person is asked. */
export type GateAnswer =
  | { readonly kind: 'run'; readonly by: 'policy' | 'rule' | null; readonly ruleId: string | null }
  | { readonly kind: 'ask' };

/** Decides which calls need a person. */
export interface ApprovalGate {
  /** `marked`: the tool, its server or the agent asks for approval. The signal ends the wait for the host's code. */
  decide(call: ApprovalCall, marked: boolean, signal: AbortSignal): Promise<GateAnswer>;
  /** What the tool's presenter says of the call; null without one, and when it fails or is late. */
  present(call: ApprovalCall, signal: AbortSignal): Promise<ToolApprovalPresentation | null>;
}

export interface ApprovalGateDeps {
  readonly policy: ApprovalPolicy | null;
  /** By the name of their tool. */
  readonly presenters: ReadonlyMap<string, ApprovalPresenter>;
  /** The standing rule that approves a call, if any. */
  matchingRule(tenantId: string, agentName: string, toolName: string, args: Json): Promise<{ id: string } | null>;
  readonly log: { warn(fields: Readonly<Record<string, unknown>>, message: string): void };
}

const policyTimeoutMs = 5000;
const presenterTimeoutMs = 2000;

const textOf = (value: unknown, length: number): string | null =>
  typeof value === 'string' ? cutText(value, length).toWellFormed() : null;

/** Host code may return anything; what is no text of the right length is left out or cut. */
const presentationOf = (value: unknown): ToolApprovalPresentation | null => {
  if (typeof value !== 'object' || value === null) return null;
  const members = value as Readonly<Record<string, unknown>>;
  return {
    entityType: textOf(members['entityType'], 128),
    entityId: textOf(members['entityId'], 256),
    entityName: textOf(members['entityName'], 256),
    message: textOf(members['message'], 1000),
  };
};

/** The policy of the host first, then the standing rules; whatever fails on the way asks. */
export const createApprovalGate = ({ policy, presenters, matchingRule, log }: ApprovalGateDeps): ApprovalGate => {
  const fieldsOf = ({ runId, toolName }: ApprovalCall) => ({ runId, tool: toolName });

  const policyAnswer = async (call: ApprovalCall, signal: AbortSignal): Promise<unknown> => {
    if (policy === null) return 'Undecided';
    const end = await withDeadline(() => policy.decide(call), policyTimeoutMs, signal);
    if (end.kind === 'returned') return end.value;
    if (end.kind !== 'canceled')
      log.warn({ ...fieldsOf(call), end }, 'The approval policy failed, so the call needs an approval');
    return 'Required';
  };

  return {
    async decide(call, marked, signal) {
      const answer = await policyAnswer(call, signal);
      if (answer === 'NotRequired') return { kind: 'run', by: 'policy', ruleId: null };
      if (answer !== 'Undecided') return { kind: 'ask' };
      if (!marked) return { kind: 'run', by: null, ruleId: null };
      try {
        const rule = await matchingRule(call.tenantId, call.agentName, call.toolName, call.arguments);
        return rule === null ? { kind: 'ask' } : { kind: 'run', by: 'rule', ruleId: rule.id };
      } catch (error) {
        log.warn({ ...fieldsOf(call), error }, 'The standing rules could not be read, so the call needs an approval');
        return { kind: 'ask' };
      }
    },
    async present(call, signal) {
      const presenter = presenters.get(call.toolName);
      if (presenter === undefined) return null;
      const end = await withDeadline((own) => presenter.present(call, own), presenterTimeoutMs, signal);
      if (end.kind === 'returned') return presentationOf(end.value);
      if (end.kind !== 'canceled') log.warn({ ...fieldsOf(call), end }, 'The presenter of a tool failed');
      return null;
    },
  };
};
