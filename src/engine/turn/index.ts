/** A turn: model calls, tool calls, and whether the answer is enough. */
export { agentLoop, type LoopResult, userMessage } from './agent-loop.ts';
export type { AnswerContext, LoopCriterionEvaluator, LoopTurn, StructuredResponseValidator } from './answer-checks.ts';
export { agentToolSchema, type ChildCaller } from './calls/agent-tool.ts';
export { createChildCaller } from './calls/child-runs.ts';
export { spansBelow } from './calls/tool-span.ts';
export { remoteTurn, unsentTask } from './remote-turn.ts';
export { structuredOutput } from './structured-response.ts';
export type { ChildPorts, ResponseCache, TurnPorts } from './turn-ports.ts';
