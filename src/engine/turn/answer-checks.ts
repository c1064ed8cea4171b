import type { Json } from '../../contract/schema.ts';
import type { ActiveRun } from '../active-run.ts';

/** What host code may decide about the answers of a run: plain contracts, called at the end of a turn. */

/** The run that an answer belongs to. */
export interface AnswerContext {
  readonly tenantId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string | null;
  readonly signal: AbortSignal;
}

export const answerContext = ({ plan, id: runId, signal }: ActiveRun): AnswerContext => {
  const { tenantId, agent, sessionId } = plan;
  return { tenantId, agentName: agent.name, runId, sessionId, signal };
};

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
