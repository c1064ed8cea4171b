import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { PriceList } from '../../engine/pricing.ts';

// Only a cache: an agent that it forgets is taken to cost something.
const maxKnownAgents = 1000;

/** Whose runs can cost something. */
export const createPricedAgents = (prices: PriceList) => {
  const unpriced = new Set<string>();
  const keyOf = (tenantId: string, agentName: string): string => `${tenantId}\n${agentName}`;

  /** Cost is only known where both directions have a price. What an agent calls may cost something, whatever it costs itself. */
  const canCost = ({ model, tools }: CompiledAgent): boolean =>
    [...tools.values()].some(({ kind }) => kind === 'agent') ||
    [model, ...model.fallbacks].some((target) => {
      const { input, output } = prices.pricesOf(target.provider.name, target.model, target.catalog);
      return input !== null && output !== null;
    });

  return {
    /** Whether a run of the agent may cost something; remembered for those that are open. */
    asked(tenantId: string, agentName: string, agent: CompiledAgent | null): boolean {
      const key = keyOf(tenantId, agentName);
      if (agent === null) return !unpriced.has(key);
      if (canCost(agent)) {
        unpriced.delete(key);
        return true;
      }
      if (unpriced.size >= maxKnownAgents) unpriced.clear();
      unpriced.add(key);
      return false;
    },
    /** Of an agent that was asked for before; true where nobody knows. */
    mayCost: (tenantId: string, agentName: string): boolean => !unpriced.has(keyOf(tenantId, agentName)),
  };
};

export type PricedAgents = ReturnType<typeof createPricedAgents>;
