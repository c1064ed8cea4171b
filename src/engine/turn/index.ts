/** A turn: model calls, tool calls, and whether the answer is enough. */
export { agentLoop, type LoopResult, userMessage } from './agent-loop.ts';
export { agentToolSchema, type ChildCaller } from './agent-tool.ts';
export type { AnswerContext, LoopCriterionEvaluator, LoopTurn, StructuredResponseValidator } from './answer-checks.ts';
export type { ResponseCache } from './response-cache.ts';
export { structuredOutput } from './structured-response.ts';
export type { TurnPorts } from './turn-ports.ts';
