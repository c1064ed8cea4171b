import type { CompiledBinding } from '../../compiled-binding.ts';

export type CompactionStrategy =
  | 'SlidingWindow'
  | 'Truncation'
  | 'ToolResult'
  | 'Summarization'
  | 'ContextWindow'
  | 'Pipeline';

/** How a history is shortened before it is sent; defaults applied. A trigger that is null never fires. */
export interface CompactionPlan {
  readonly strategy: CompactionStrategy;
  readonly triggerTokens: number | null;
  readonly triggerMessages: number | null;
  readonly triggerTurns: number | null;
  readonly minimumPreservedTurns: number;
  readonly minimumPreservedGroups: number;
  /** Largest prompt of ContextWindow: the window less what is left to the answer. Null for the other strategies. */
  readonly maxPromptTokens: number | null;
  /** Null: the built-in one. */
  readonly summarizationPrompt: string | null;
  readonly summaryModel: CompiledBinding;
}
