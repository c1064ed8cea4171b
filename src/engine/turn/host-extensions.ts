import type { Json } from '../../contract/schema.ts';

/** What host code may decide about runs beside tools: plain contracts, called by the features that own the decision. */

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

/** The run that an answer belongs to. */
export interface AnswerContext {
  readonly tenantId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string | null;
  readonly signal: AbortSignal;
}

/** Looks at a structured answer that fits its schema; throwing rejects it. */
export type StructuredResponseValidator = (answer: Json, context: AnswerContext) => void | Promise<void>;

/** A finished turn that a loop may continue. */
export interface LoopTurn extends AnswerContext {
  /** Of the turn that has ended, from 1. */
  readonly iteration: number;
  readonly answer: string;
  /** The criterion as the definition has it. */
  readonly criterion: Readonly<Record<string, Json>>;
}

/** Decides whether a turn is enough; `feedback` is the next input when it is not. Throwing counts as met. */
export type LoopCriterionEvaluator = (turn: LoopTurn) => Promise<{ met: boolean; feedback?: string | null }>;
