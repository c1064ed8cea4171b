import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { TreeLimits } from '../../engine/control/index.ts';

/** What runs of a protocol may use, as the host has set it. */
export interface ExposedBudget {
  readonly MaxDepth: number;
  readonly MaxTotalRuns: number;
  readonly MaxTotalTokens: number;
}

/** Why an agent cannot be offered where nobody can be asked; null: it can. */
export const exposureHindrance = (agent: Pick<CompiledAgent, 'tools' | 'asksForEveryTool'>): string | null => {
  for (const [name, tool] of agent.tools) {
    if (tool.kind === 'tool' && tool.tool.descriptor.runsOnClient) return `its tool "${name}" runs on the client`;
    if (agent.asksForEveryTool || (tool.kind === 'tool' && tool.tool.descriptor.requiresApproval))
      return `its tool "${name}" needs an approval`;
  }
  return null;
};

/** Of two limits the lower one, where one that is not positive is none. */
const lower = (one: number, other: number): number => {
  if (one <= 0) return other;
  return other <= 0 ? one : Math.min(one, other);
};

/** The limits of a tree that another system started: never wider than those of every tree. */
export const exposedLimits = (tree: TreeLimits, budget: ExposedBudget): TreeLimits => ({
  ...tree,
  maxDepth: Math.max(0, Math.min(tree.maxDepth, budget.MaxDepth)),
  maxTotalRuns: lower(tree.maxTotalRuns, budget.MaxTotalRuns),
  maxTotalTokens: lower(tree.maxTotalTokens, budget.MaxTotalTokens),
});
