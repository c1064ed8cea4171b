import type { RunRow } from '../../db/tables.ts';
import { createPriceList, decimal, type UnitPrices } from '../../engine/pricing.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import { createRunPricing, decodeShares, microsOf, type PricedRun } from '../runs/index.ts';
import { cappedList, groups, topList } from './capped-list.ts';
import type { Gaps } from './gaps.ts';
import type { HistoryStore } from './history.store.ts';
import { createBreather, type HistoryScope, type PolicyOutcome, walkHistory } from './history-walk.ts';
import type { PriceDocument, PriceFindings } from './policy-tests.schema.ts';

export interface PriceTestDeps {
  readonly store: HistoryStore;
  readonly providers: Pick<ModelProviders, 'list'>;
  readonly currency: string | null;
}

type Priced = PriceFindings['changes'][number];
type Source = PriceFindings['byModel'][number]['source'];

interface Sum {
  runs: number;
  old: number;
  new: number;
}

const money = (micros: number): number => decimal(micros) ?? 0;
const shown = ({ runs, old, new: next }: Sum) => ({ runs, oldCost: money(old), newCost: money(next) });
const add = (sum: Sum, old: number, next: number): void => {
  sum.runs += 1;
  sum.old += old;
  sum.new += next;
};

const placeOf = (row: RunRow) => ({
  runId: row.id,
  agentName: row.agent_name,
  modelProvider: row.model_provider,
  modelId: row.model_id,
});

/** Recorded usage at the prices of a table, by the code that prices runs. Provider catalogs come first, as they do there. */
export const testPrices = async (
  { store, providers, currency }: PriceTestDeps,
  scope: HistoryScope,
  document: PriceDocument,
  gaps: Gaps,
): Promise<PolicyOutcome<PriceFindings>> => {
  const priceOf = createRunPricing(createPriceList(currency, document), providers);
  const total: Sum = { runs: 0, old: 0, new: 0 };
  const fresh: Sum = { runs: 0, old: 0, new: 0 };
  const byAgent = groups((agentName) => ({ agentName, runs: 0, old: 0, new: 0 }));
  const models = new Map<string, { provider: string | null; model: string; source: Source }>();
  const byModel = groups((key) => ({ key, runs: 0, old: 0, new: 0 }));
  const changes = topList<Priced>(scope.take, ({ difference }) => Math.abs(difference));
  const withoutPrice = cappedList<PriceFindings['withoutPrice'][number]>(scope.take);
  let runsExamined = 0;
  let unpriced = 0;
  let changed = 0;

  const addModel = (
    provider: string | null,
    model: string,
    { source: by }: UnitPrices,
    old: number,
    next: number,
  ): void => {
    const source: Source = by === 'Catalog' ? 'Catalog' : 'Configuration';
    const sum = byModel.of(JSON.stringify([provider, model, source]));
    models.set(sum.key, { provider, model, source });
    add(sum, old, next);
  };

  /** What each model of the run cost and would cost; one whose old cost is unknown is in the sums of the run alone. */
  const addModels = (row: RunRow, { total, prices, shares }: PricedRun, old: number): void => {
    const before = decodeShares(row.model_shares);
    if (shares === null || before === null) {
      addModel(row.model_provider, row.model_id ?? '', prices, old, total);
      return;
    }
    for (const [at, { p, m, s, cost }] of shares.entries()) {
      const was = before[at]?.s ?? null;
      if (s !== null && cost !== null && was !== null) addModel(p, m ?? '', microsOf(cost).prices, was, s);
    }
  };

  const compare = (row: RunRow, cost: PricedRun): void => {
    const { total: next } = cost;
    const old = row.total_cost_micros;
    if (old === null) {
      add(fresh, 0, next);
      return;
    }
    add(total, old, next);
    add(byAgent.of(row.agent_name), old, next);
    addModels(row, cost, old);
    if (old === next) return;
    changed += 1;
    changes.add({ ...placeOf(row), oldCost: money(old), newCost: money(next), difference: money(next - old) });
  };

  const look = (row: RunRow): void => {
    runsExamined += 1;
    const cost = row.completed_at === null ? null : priceOf(row);
    if (cost === null) gaps.add(row.id, 'Usage', 'RunOpen');
    else if (cost === 'Skipped') {
      // A run without any model call has used nothing that could cost.
      if (row.total_cost_micros !== 0) gaps.add(row.id, 'Usage', 'NotStored');
    } else if (cost === 'Unknown') {
      unpriced += 1;
      withoutPrice.add(placeOf(row));
    } else compare(row, cost);
  };

  const breathe = createBreather();
  for await (const rows of walkHistory(store, scope))
    for (const row of rows) {
      look(row);
      await breathe();
    }
  return {
    runsExamined,
    matches: changed + fresh.runs + unpriced,
    findings: {
      currency,
      runsCompared: total.runs,
      oldCost: money(total.old),
      newCost: money(total.new),
      runsChanged: changed,
      runsNewlyPriced: fresh.runs,
      newlyPricedCost: money(fresh.new),
      runsWithoutPrice: unpriced,
      byModel: byModel.all.map((sum) => {
        const priced = models.get(sum.key);
        const isOther = sum.key === '(other)';
        return {
          modelProvider: isOther ? null : (priced?.provider ?? null),
          modelId: isOther ? sum.key : (priced?.model ?? ''),
          source: priced?.source ?? 'Configuration',
          ...shown(sum),
        };
      }),
      byAgent: byAgent.all.map((sum) => ({ agentName: sum.agentName, ...shown(sum) })),
      changes: [...changes.items],
      changesOmitted: changes.omitted,
      withoutPrice: [...withoutPrice.items],
      withoutPriceOmitted: withoutPrice.omitted,
    },
  };
};
