import type { ModelUsage } from '../../providers/models/model-provider.ts';
import { unreportedUsage } from '../../providers/models/model-usage.ts';
import type { CostMicros } from '../pricing.ts';
import { RunFailure } from '../run-failure.ts';
import { addUsage } from '../usage.ts';

/** Limits of a run tree. Non-positive counts and nulls mean no limit; depth 0 allows no child. */
export interface TreeLimits {
  readonly maxDepth: number;
  readonly maxTotalTokens: number;
  readonly maxTotalRuns: number;
  readonly maxTotalCostMicros: number | null;
  readonly maxDurationMs: number | null;
}

/** What a run tree has used so far, shared by all its runs in this process. */
export class TreeBudget {
  readonly #limits: TreeLimits;
  #startedAt: number;
  readonly #now: () => number;
  #tokens = 0;
  #costMicros = 0;
  #children = 0;
  #usage: ModelUsage = unreportedUsage;

  constructor(limits: TreeLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
    this.#startedAt = now();
  }

  /** The time counts from now on: a run in line uses none of it. */
  begin(): void {
    this.#startedAt = this.#now();
  }

  /** What the whole tree has used, for `usage.updated`. */
  get usage(): ModelUsage {
    return this.#usage;
  }

  /** What counts against the limits; quotas book the same sums. */
  get spent(): { readonly tokens: number; readonly costMicros: number } {
    return { tokens: this.#tokens, costMicros: this.#costMicros };
  }

  /** Milliseconds until the tree's time is up; null without a limit. */
  get remainingMs(): number | null {
    const { maxDurationMs } = this.#limits;
    return maxDurationMs === null ? null : Math.max(0, this.#startedAt + maxDurationMs - this.#now());
  }

  /** Before every model call. The run that meets the limit fails with `budget_exceeded`. */
  check(): void {
    const { maxTotalTokens, maxTotalCostMicros } = this.#limits;
    if (maxTotalTokens > 0 && this.#tokens >= maxTotalTokens)
      throw budgetExceeded(`The run tree has used its ${maxTotalTokens} tokens.`);
    if (maxTotalCostMicros !== null && this.#costMicros >= maxTotalCostMicros)
      throw budgetExceeded(`The run tree has used its budget of ${maxTotalCostMicros / 1_000_000}.`);
    if (this.remainingMs === 0) throw budgetExceeded('The run tree has used its time.');
  }

  settle(usage: ModelUsage, cost: CostMicros): void {
    this.#tokens += usage.totalTokens ?? (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
    this.#usage = addUsage(this.#usage, usage);
    // A call without a known price counts by its tokens only.
    this.#costMicros += cost.total ?? 0;
  }

  /** Takes a place for a child at this depth; a text for the caller's model when there is none. */
  admitChild(depth: number): string | null {
    const { maxDepth, maxTotalRuns } = this.#limits;
    if (depth > maxDepth) return `The call is too deep: agents may call each other ${maxDepth} levels deep.`;
    if (maxTotalRuns > 0 && this.#children >= maxTotalRuns)
      return `The run tree has used its ${maxTotalRuns} agent calls.`;
    this.#children += 1;
    return null;
  }
}

const budgetExceeded = (message: string): RunFailure => new RunFailure('QuotaExceeded', 'budget_exceeded', message);
