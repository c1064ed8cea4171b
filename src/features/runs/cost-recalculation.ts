import type { RunRow } from '../../db/tables.ts';
import { type CostMicros, costOf, type PriceList, type UnitPrices } from '../../engine/pricing.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import { tokensOf } from './run-record.ts';
import { encodeCost } from './stored-cost.ts';
import type { RunCost, UnpricedRuns } from './unpriced-runs.store.ts';

export interface CostRecalculation {
  readonly runsConsidered: number;
  readonly runsUpdated: number;
  /** No price is known for their model. */
  readonly runsStillUnknown: number;
  /** They name no model, or their provider reported no tokens. */
  readonly runsSkipped: number;
}

export interface CostRecalculationDeps {
  readonly unpriced: UnpricedRuns;
  readonly prices: PriceList;
  readonly providers: Pick<ModelProviders, 'list'>;
}

// Written in one transaction each, so that other writers get their turn between them.
const runsPerChunk = 500;

/** What a closed run costs at the prices of a list, or why nobody knows: no price for its model, or no tokens. */
export type RunPricing = (row: RunRow) => CostMicros | 'Unknown' | 'Skipped';

export const createRunPricing = (prices: PriceList, providers: Pick<ModelProviders, 'list'>): RunPricing => {
  const byName = [...providers.list()].sort((a, b) => (a.name < b.name ? -1 : 1));

  const known = (price: UnitPrices): boolean => price.input !== null || price.output !== null;

  /** A row without provider is matched by its model's name, at the first provider that has a price for it. */
  const priceOf = (row: RunRow, model: string): UnitPrices | null => {
    for (const { name, catalog } of byName) {
      if (row.model_provider !== null && row.model_provider !== name) continue;
      const price = prices.pricesOf(name, model, catalog.find((entry) => entry.name === model) ?? null);
      if (known(price)) return price;
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

/** Gives a cost to closed runs whose price was unknown. A known cost is never rewritten. */
export const createCostRecalculation = ({ unpriced, prices, providers }: CostRecalculationDeps) => {
  const newCost = createRunPricing(prices, providers);
  return async (tenantId: string): Promise<CostRecalculation> => {
    const result = { runsConsidered: 0, runsUpdated: 0, runsStillUnknown: 0, runsSkipped: 0 };
    for (let after = ''; ; ) {
      const rows = await unpriced.next(tenantId, after, runsPerChunk);
      const last = rows.at(-1);
      if (last === undefined) return result;
      after = last.id;
      result.runsConsidered += rows.length;
      const costs: RunCost[] = [];
      for (const row of rows) {
        const cost = newCost(row);
        if (cost === 'Skipped') result.runsSkipped += 1;
        else if (cost === 'Unknown') result.runsStillUnknown += 1;
        else costs.push({ run: row, cost: encodeCost(cost, prices.currency), totalMicros: cost.total });
      }
      if (costs.length > 0) await unpriced.price(costs);
      result.runsUpdated += costs.length;
    }
  };
};
