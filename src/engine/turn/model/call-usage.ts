import type { ModelFinish } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledTarget } from '../../compiled-agent.ts';
import { costOf, publicCost } from '../../pricing.ts';
import { reportedUsage } from '../../usage.ts';
import type { ModelPorts } from '../turn-ports.ts';

/** What a model call used, at its price, added to the run and its tree. */
export const addCallUsage = (
  run: ActiveRun,
  ports: Pick<ModelPorts, 'prices' | 'metrics' | 'log'>,
  target: CompiledTarget,
  { usage, impossibleCounts }: ModelFinish,
): void => {
  if (impossibleCounts !== undefined)
    ports.log.warn(
      { runId: run.id, requestId: run.plan.requestId, provider: target.provider.name, counts: impossibleCounts },
      'A model provider reported counts that no call can have; they count as not reported',
    );
  const prices = ports.prices.pricesOf(target.provider.name, target.model, target.catalog);
  const cost = costOf(usage, prices);
  ports.metrics.used(run, target, usage, cost, ports.prices.currency);
  run.addUsage(target, usage, cost);
  run.budget.settle(usage, cost);
};

/** Writes the sums so far; after every model call. */
export const announceUsage = (run: ActiveRun, ports: Pick<ModelPorts, 'prices'>): void => {
  run.log.append('usage.updated', {
    usage: reportedUsage(run.usage),
    cost: run.cost === null ? null : publicCost(run.cost, ports.prices.currency),
    treeUsage: reportedUsage(run.budget.usage),
  });
};
