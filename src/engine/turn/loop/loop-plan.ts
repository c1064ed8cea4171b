import type { CompiledBinding } from '../../compiled-binding.ts';

export const builtInCriteria = ['completionMarker', 'todoCompletion', 'aiJudge', 'backgroundTaskCompletion'] as const;

/** One condition under which a loop ends; which members count depends on the kind. */
export interface LoopCriterion {
  /** A built-in kind, or one that a module registered. */
  readonly kind: string;
  readonly marker: string | null;
  readonly judgeCriteria: readonly string[];
  readonly judgeInstructions: string | null;
  /** Modes in which open todo entries count; empty: in all. */
  readonly modes: readonly string[];
}

export interface LoopPlan {
  readonly criteria: readonly LoopCriterion[];
  readonly maxIterations: number;
  readonly freshContextPerIteration: boolean;
  /** Model of aiJudge. */
  readonly judgeModel: CompiledBinding;
}

/** `feedback` is the model's next input when the criterion is not met. */
export interface LoopVerdict {
  readonly met: boolean;
  readonly feedback?: string | null;
}
