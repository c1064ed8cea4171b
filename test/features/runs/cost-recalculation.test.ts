import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunRow } from '../../../src/db/tables.ts';
import { createPriceList } from '../../../src/engine/pricing.ts';
import {
  type CostRecalculation,
  createCostRecalculation,
  createRunPricing,
} from '../../../src/features/runs/cost-recalculation.ts';
import type { RunCost } from '../../../src/features/runs/unpriced-runs.store.ts';

const prices = createPriceList('EUR', { demo: { 'demo-1': { Input: 10, Output: 20 } } });

/** Closed runs; `model` is that of a run by its number. */
const unpricedRuns = (count: number, model: (index: number) => string) => {
  const rows = Array.from({ length: count }, (_, index) => ({
    tenant_id: 'default',
    id: String(index).padStart(6, '0'),
    model_provider: 'demo',
    model_id: model(index),
    input_tokens: 1,
    output_tokens: 1,
    total_tokens: 2,
    model_shares: null,
  }));
  return {
    next: async (_tenantId: string, after: string, limit: number) =>
      rows.filter(({ id }) => after === '' || id > after).slice(0, limit) as unknown as RunRow[],
  };
};

const recalculate = async (count: number, model: (index: number) => string) => {
  const units: { ids: string[]; since: CostRecalculation }[] = [];
  const providers = { list: () => [{ name: 'demo', catalog: [] }] } as never;
  const recalculation = createCostRecalculation({ unpriced: unpricedRuns(count, model), prices, providers });
  const result = await recalculation('default', async (write, since) => {
    const unit: string[] = [];
    const store = { price: async (costs: readonly RunCost[]) => void unit.push(...costs.map(({ run }) => run.id)) };
    await write(() => store as never);
    units.push({ ids: unit, since });
  });
  const sum = (name: keyof CostRecalculation) => units.reduce((total, { since }) => total + since[name], 0);
  for (const name of Object.keys(result) as (keyof CostRecalculation)[]) assert.equal(sum(name), result[name], name);
  assert.equal(new Set(units.flatMap(({ ids }) => ids)).size, result.runsUpdated, 'each run is written once');
  return { result, sizes: units.map(({ ids }) => ids.length) };
};

test('RUN-60 each unit tells of the runs that it prices, and the entries of all add up to the answer', async () => {
  const priced = () => 'demo-1';
  assert.deepEqual((await recalculate(3, priced)).sizes, [3]);
  assert.deepEqual((await recalculate(1000, priced)).sizes, [500, 500], 'no entry about nothing follows');
  assert.deepEqual((await recalculate(1001, priced)).sizes, [500, 500, 1]);
  const { result, sizes } = await recalculate(1600, (index) => (index >= 500 && index < 1000 ? 'demo-1' : 'free'));
  assert.deepEqual(sizes, [500, 0], 'what changes nothing is told with the next unit, at the latest with the last');
  assert.deepEqual(result, { runsConsidered: 1600, runsUpdated: 500, runsStillUnknown: 1100, runsSkipped: 0 });
  assert.deepEqual((await recalculate(0, priced)).sizes, [0]);
});

test('RUN-60 a test of prices reckons every model of a run anew, where a recalculation keeps what is known', () => {
  const priced = createRunPricing(prices, { list: () => [{ name: 'demo', catalog: [] }] } as never);
  const tokens = { i: 1_000_000, o: 0, t: 1_000_000, c: null };
  const known = { p: 'demo', m: 'demo-1', n: 1, ...tokens, s: 3, cost: { i: 3, o: 0, t: 3 } };
  const row = {
    kind: 'Agent',
    total_tokens: 2_000_000,
    model_shares: JSON.stringify([known, { ...known, cost: null }]),
  };
  const totalOf = (keepsKnown: boolean) => {
    const cost = priced(row as never, keepsKnown);
    return typeof cost === 'string' ? cost : cost.total;
  };
  assert.deepEqual([totalOf(true), totalOf(false)], [10_000_003, 20_000_000]);
});
