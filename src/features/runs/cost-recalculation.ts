import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import { type CostMicros, costOf, type PriceList, type UnitPrices } from '../../engine/pricing.ts';
import { createElsewherePrices } from '../../engine/record/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import { tokensOf } from './run-record.ts';
import { encodeCost } from './stored-cost.ts';
import { type RunCost, type UnpricedRuns, unpricedRuns } from './unpriced-runs.store.ts';

export interface CostRecalculation {
  readonly runsConsidered: number;
  readonly runsUpdated: number;
  /** No price is known for their model. */
  readonly runsStillUnknown: number;
  /** They name no model, or their provider reported no tokens. */
  readonly runsSkipped: number;
}

export interface CostRecalculationDeps {
  readonly unpriced: Pick<UnpricedRuns, 'next'>;
  readonly prices: PriceList;
  readonly providers: Pick<ModelProviders, 'list'>;
}

// Written in one transaction each, so that other writers get their turn between them.
const runsPerChunk = 500;

/** What a closed run costs at the prices of a list, or why nobody knows: no price for its model, or no tokens. */
export type RunPricing = (row: RunRow) => CostMicros | 'Unknown' | 'Skipped';

export const createRunPricing = (prices: PriceList, providers: Pick<ModelProviders, 'list'>): RunPricing => {
  const byName = [...providers.list()].sort((a, b) => (a.name < b.name ? -1 : 1));

  const pricesElsewhere = createElsewherePrices(prices, providers);

  const isPriced = (price: UnitPrices): boolean => price.input !== null || price.output !== null;

  /** A row without provider is matched by its model's name, at the first provider that has a price for it. */
  const priceOf = (row: RunRow, model: string): UnitPrices | null => {
    if (row.kind === 'External') return pricesElsewhere(row.model_provider, [model]);
    for (const { name, catalog } of byName) {
      if (row.model_provider !== null && row.model_provider !== name) continue;
      const price = prices.pricesOf(name, model, catalog.find((entry) => entry.name === model) ?? null);
      if (isPriced(price)) return price;
    }
    return null;
  };

  return (row) => {
    if (row.model_id === null || row.total_tokens === null) return 'Skipped';
    const price = priceOf(row, row.model_id);
    if (price === null) return 'Unknown';
    const cost = costOf(tokensOf(row), price);
    return cost.total === null ? 'Unknown' : cost;
  };
};

const nothing: CostRecalculation = { runsConsidered: 0, runsUpdated: 0, runsStillUnknown: 0, runsSkipped: 0 };

const sumOf = (one: CostRecalculation, other: CostRecalculation): CostRecalculation => ({
  runsConsidered: one.runsConsidered + other.runsConsidered,
  runsUpdated: one.runsUpdated + other.runsUpdated,
  runsStillUnknown: one.runsStillUnknown + other.runsStillUnknown,
  runsSkipped: one.runsSkipped + other.runsSkipped,
});

/**
 * Gives a cost to closed runs whose price was unknown. A known cost is never rewritten. `commit` gets what one unit writes
 * and what was found out since the last one; the last unit comes even if it has nothing to write.
 */
export const createCostRecalculation = ({ unpriced, prices, providers }: CostRecalculationDeps) => {
  const newCost = createRunPricing(prices, providers);
  const pricesOf = (rows: readonly RunRow[]): { costs: readonly RunCost[]; outcome: CostRecalculation } => {
    const outcomes = rows.map((run) => [run, newCost(run)] as const);
    const count = (why: 'Unknown' | 'Skipped'): number => outcomes.filter(([, cost]) => cost === why).length;
    const costs = outcomes.flatMap(([run, cost]) =>
      typeof cost === 'string' ? [] : [{ run, cost: encodeCost(cost, prices.currency), totalMicros: cost.total }],
    );
    const [runsStillUnknown, runsSkipped] = [count('Unknown'), count('Skipped')];
    return {
      costs,
      outcome: { runsConsidered: rows.length, runsUpdated: costs.length, runsStillUnknown, runsSkipped },
    };
  };
  return async (
    tenantId: string,
    commit: (write: (stores: Storage['stores']) => Promise<void>, since: CostRecalculation) => Promise<void>,
  ): Promise<CostRecalculation> => {
    let [result, since] = [nothing, nothing];
    for (let rows = await unpriced.next(tenantId, '', runsPerChunk); ; ) {
      const last = rows.length < runsPerChunk ? undefined : rows.at(-1);
      const following = last === undefined ? [] : await unpriced.next(tenantId, last.id, runsPerChunk);
      const { costs, outcome } = pricesOf(rows);
      [result, since] = [sumOf(result, outcome), sumOf(since, outcome)];
      if (costs.length > 0 || following.length === 0) {
        await commit((stores) => stores(unpricedRuns).price(costs), since);
        since = nothing;
      }
      if (following.length === 0) return result;
      rows = following;
    }
  };
};

export type RecalculateCosts = ReturnType<typeof createCostRecalculation>;
