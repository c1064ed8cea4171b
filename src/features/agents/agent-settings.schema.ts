import Type, { type TSchema } from 'typebox';
import { nullable } from '../../contract/schema.ts';
import type { WordSchema } from './agent-words.schema.ts';

/** Far more than the rules of agents allow of anything, and few enough to report each. */
export const mostListed = 1000;

const flag = () => Type.Optional(Type.Boolean());
const text = (description: string) => Type.Optional(nullable(Type.String({ description })));
const count = (description = 'At least 1') => Type.Optional(nullable(Type.Integer({ description })));

export const compactionStrategies = [
  'None',
  'SlidingWindow',
  'Truncation',
  'ToolResult',
  'Summarization',
  'ContextWindow',
  'Pipeline',
] as const;

/** What is sent of a long history. */
export const compactionSettings = <B extends TSchema>(word: WordSchema, binding: B) =>
  Type.Object({
    strategy: word(compactionStrategies),
    triggerTokens: count(),
    triggerMessages: count(),
    triggerTurns: count(),
    minimumPreservedTurns: count('At least 1; default 2'),
    minimumPreservedGroups: count('At least 1; default 4'),
    maxContextWindowTokens: count(),
    maxOutputTokens: count("At least 1; default the binding's, else 4096"),
    summarizationPrompt: text('At most 16384 bytes'),
    summarizationModel: Type.Optional(nullable(binding)),
  });

export const MemorySettings = Type.Object({
  enableFileMemory: flag(),
  enableTodo: flag(),
  enableTextSearch: flag(),
  enableVectorSearch: flag(),
  vectorCollection: text("`[A-Za-z0-9._-]{1,128}`; default the agent's name"),
});

const LoopCriterion = Type.Object({
  kind: Type.String({
    description:
      'completionMarker, todoCompletion, aiJudge, backgroundTaskCompletion or a kind that a module registers',
  }),
  marker: text('completionMarker: what the answer has to contain, at most 256 characters'),
  judgeCriteria: Type.Optional(Type.Array(Type.String(), { maxItems: mostListed, description: 'aiJudge: 1 to 20' })),
  judgeInstructions: text('aiJudge: at most 16384 bytes'),
  modes: Type.Optional(
    Type.Array(Type.String(), { maxItems: mostListed, description: 'todoCompletion: counts in these modes only' }),
  ),
});

const LoopSettings = Type.Object({
  criteria: Type.Array(LoopCriterion, { maxItems: mostListed, description: '1 to 10, asked in order' }),
  maxIterations: count('1..100, default 10'),
  freshContextPerIteration: flag(),
});

export const HarnessSettings = Type.Object({
  maxContextWindowTokens: count(),
  maxOutputTokens: count(),
  maximumIterationsPerRequest: count('1..1000, default `Tools:MaxIterations`'),
  harnessInstructions: text('At most 65536 bytes; default a description of what the harness gives'),
  disableCompaction: flag(),
  disableTodo: flag(),
  disableFileMemory: flag(),
  disableWebSearch: flag(),
  disableSkills: flag(),
  disableModes: flag(),
  disableToolAutoApproval: flag(),
  loop: Type.Optional(nullable(LoopSettings)),
});
