import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import {
  addCosts,
  type CostMicros,
  costOf,
  type PriceList,
  type UnitPrices,
  unknownPrices,
} from '../../engine/pricing.ts';
import { createElsewherePrices } from '../../engine/record/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import { unreportedUsage } from '../../providers/models/model-usage.ts';
import { tokensOf } from './run-record.ts';
import { encodeCost, microsOf } from './stored-cost.ts';
import { decodeShares, type StoredShare, usageOfShare, withCost } from './stored-shares.ts';
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

/** What a closed run costs, and each of its models where they were several. */
export interface PricedRun extends CostMicros {
  readonly total: number;
  readonly shares: readonly StoredShare[] | null;
}

/**
 * What a closed run costs at the prices of a list, or why it is unknown: no price for one of its models, or no tokens.
 * `keepsKnown`: a cost of one of its models that is known stays.
 */
export type RunPricing = (row: RunRow, keepsKnown?: boolean) => PricedRun | 'Unknown' | 'Skipped';

export const createRunPricing = (prices: PriceList, providers: Pick<ModelProviders, 'list'>): RunPricing => {
  const byName = [...providers.list()].sort((a, b) => (a.name < b.name ? -1 : 1));

  const pricesElsewhere = createElsewherePrices(prices, providers);

  const isPriced = (price: UnitPrices): boolean => price.input !== null || price.output !== null;

  /** A row without provider is matched by its model's name, at the first provider that has a price for it. */
  const priceOf = (kind: string, provider: string | null, model: string): UnitPrices | null => {
    if (kind === 'External') return pricesElsewhere(provider, [model]);
    for (const { name, catalog } of byName) {
      if (provider !== null && provider !== name) continue;
      const price = prices.pricesOf(name, model, catalog.find((entry) => entry.name === model) ?? null);
      if (isPriced(price)) return price;
    }
    return null;
  };

  const known = (cost: CostMicros, shares: PricedRun['shares'] = null): PricedRun | 'Unknown' =>
    cost.total === null ? 'Unknown' : { ...cost, total: cost.total, shares };

  const costOfShare = ({ kind }: RunRow, share: StoredShare, keepsKnown: boolean): CostMicros => {
    if (keepsKnown && share.cost !== null && share.cost.t !== null) return microsOf(share.cost);
    const price = share.m === null ? null : priceOf(kind, share.p, share.m);
    return costOf(usageOfShare(share), price ?? unknownPrices);
  };

  /** Each model at its own price. */
  const ofShares = (row: RunRow, shares: readonly StoredShare[], keepsKnown: boolean): PricedRun | 'Unknown' => {
    const priced = shares
      .filter(({ t }) => t !== null)
      .map((share) => ({ share, cost: costOfShare(row, share, keepsKnown) }));
    const costs = new Map(priced.map(({ share, cost }) => [share, cost]));
    const [first = costOf(unreportedUsage, unknownPrices), ...others] = costs.values();
    return known(
      others.reduce(addCosts, first),
      shares.map((share) => withCost(share, costs.get(share) ?? null, prices.currency)),
    );
  };

  return (row, keepsKnown = false) => {
    const shares = decodeShares(row.model_shares);
    if (row.total_tokens === null) return 'Skipped';
    if (shares !== null) return ofShares(row, shares, keepsKnown);
    if (row.model_id === null) return 'Skipped';
    const price = priceOf(row.kind, row.model_provider, row.model_id);
    return price === null ? 'Unknown' : known(costOf(tokensOf(row), price));
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
    const outcomes = rows.map((run) => [run, newCost(run, true)] as const);
    const count = (why: 'Unknown' | 'Skipped'): number => outcomes.filter(([, cost]) => cost === why).length;
    const costs = outcomes.flatMap(([run, cost]) =>
      typeof cost === 'string'
        ? []
        : [
            {
              run,
              cost: encodeCost(cost, prices.currency),
              totalMicros: cost.total,
              shares: cost.shares === null ? null : JSON.stringify(cost.shares),
            },
          ],
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
