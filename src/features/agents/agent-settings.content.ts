import { type BindingContent, bindingContent, canonicalWord } from './agent-model.content.ts';
import { compactionStrategies } from './agent-settings.schema.ts';
import type { AgentDefinitionRequest } from './agents.schema.ts';

type Given<K extends 'compaction' | 'memory' | 'harness'> = NonNullable<AgentDefinitionRequest[K]>;

/** Numbers and texts that are null take the default that the compiler knows. */
export interface CompactionContent {
  readonly strategy: (typeof compactionStrategies)[number];
  readonly triggerTokens: number | null;
  readonly triggerMessages: number | null;
  readonly triggerTurns: number | null;
  readonly minimumPreservedTurns: number | null;
  readonly minimumPreservedGroups: number | null;
  readonly maxContextWindowTokens: number | null;
  readonly maxOutputTokens: number | null;
  readonly summarizationPrompt: string | null;
  readonly summarizationModel: BindingContent | null;
}

export interface MemoryContent {
  readonly enableFileMemory: boolean;
  readonly enableTodo: boolean;
  readonly enableTextSearch: boolean;
  readonly enableVectorSearch: boolean;
  readonly vectorCollection: string | null;
}

export interface LoopCriterionContent {
  readonly kind: string;
  readonly marker: string | null;
  readonly judgeCriteria: string[];
  readonly judgeInstructions: string | null;
  readonly modes: string[];
}

export interface LoopContent {
  readonly criteria: LoopCriterionContent[];
  readonly maxIterations: number | null;
  readonly freshContextPerIteration: boolean;
}

export interface HarnessContent {
  readonly maxContextWindowTokens: number | null;
  readonly maxOutputTokens: number | null;
  readonly maximumIterationsPerRequest: number | null;
  readonly harnessInstructions: string | null;
  readonly disableCompaction: boolean;
  readonly disableTodo: boolean;
  readonly disableFileMemory: boolean;
  readonly disableWebSearch: boolean;
  readonly disableSkills: boolean;
  readonly disableModes: boolean;
  readonly disableToolAutoApproval: boolean;
  readonly loop: LoopContent | null;
}

export const compactionContent = (given: Given<'compaction'> | null): CompactionContent | null =>
  given === null
    ? null
    : {
        strategy: canonicalWord(compactionStrategies, given.strategy),
        triggerTokens: given.triggerTokens ?? null,
        triggerMessages: given.triggerMessages ?? null,
        triggerTurns: given.triggerTurns ?? null,
        minimumPreservedTurns: given.minimumPreservedTurns ?? null,
        minimumPreservedGroups: given.minimumPreservedGroups ?? null,
        maxContextWindowTokens: given.maxContextWindowTokens ?? null,
        maxOutputTokens: given.maxOutputTokens ?? null,
        summarizationPrompt: given.summarizationPrompt ?? null,
        summarizationModel:
          given.summarizationModel === undefined || given.summarizationModel === null
            ? null
            : bindingContent(given.summarizationModel),
      };

export const memoryContent = (given: Given<'memory'> | null): MemoryContent | null =>
  given === null
    ? null
    : {
        enableFileMemory: given.enableFileMemory ?? false,
        enableTodo: given.enableTodo ?? false,
        enableTextSearch: given.enableTextSearch ?? false,
        enableVectorSearch: given.enableVectorSearch ?? false,
        vectorCollection: given.vectorCollection ?? null,
      };

const loopContent = (given: NonNullable<Given<'harness'>['loop']>): LoopContent => ({
  criteria: given.criteria.map((criterion) => ({
    kind: criterion.kind,
    marker: criterion.marker ?? null,
    judgeCriteria: criterion.judgeCriteria ?? [],
    judgeInstructions: criterion.judgeInstructions ?? null,
    modes: criterion.modes ?? [],
  })),
  maxIterations: given.maxIterations ?? null,
  freshContextPerIteration: given.freshContextPerIteration ?? false,
});

export const harnessContent = (given: Given<'harness'> | null): HarnessContent | null =>
  given === null
    ? null
    : {
        maxContextWindowTokens: given.maxContextWindowTokens ?? null,
        maxOutputTokens: given.maxOutputTokens ?? null,
        maximumIterationsPerRequest: given.maximumIterationsPerRequest ?? null,
        harnessInstructions: given.harnessInstructions ?? null,
        disableCompaction: given.disableCompaction ?? false,
        disableTodo: given.disableTodo ?? false,
        disableFileMemory: given.disableFileMemory ?? false,
        disableWebSearch: given.disableWebSearch ?? false,
        disableSkills: given.disableSkills ?? false,
        disableModes: given.disableModes ?? false,
        disableToolAutoApproval: given.disableToolAutoApproval ?? false,
        loop: given.loop === undefined || given.loop === null ? null : loopContent(given.loop),
      };
