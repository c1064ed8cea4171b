import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addCosts,
  type CostMicros,
  costOf,
  createPriceList,
  publicCost,
  type UnitPrices,
} from '../../src/engine/pricing.ts';
import { addUsage, reportedUsage } from '../../src/engine/usage.ts';
import type { ModelCatalogEntry } from '../../src/providers/models/model-provider.ts';
import { unreportedUsage } from '../../src/providers/models/model-usage.ts';

const usage = (input: number | null, output: number | null, cached: number | null = null) => ({
  ...unreportedUsage,
  inputTokens: input,
  outputTokens: output,
  cachedInputTokens: cached,
});

const prices = (input: number | null, output: number | null, cachedInput: number | null = null): UnitPrices => ({
  input: input === null ? null : input * 1_000_000,
  output: output === null ? null : output * 1_000_000,
  cachedInput: cachedInput === null ? null : cachedInput * 1_000_000,
  source: 'Configuration',
});

const amounts = ({ input, output, cachedInput, total }: CostMicros) => [input, output, cachedInput, total];

const entry = (given: Partial<ModelCatalogEntry>): ModelCatalogEntry =>
  ({
    name: 'm',
    inputCostPerMillionTokens: null,
    outputCostPerMillionTokens: null,
    cachedInputCostPerMillionTokens: null,
    ...given,
  }) as ModelCatalogEntry;

test('RUN-62 each term is rounded half to even to micro-units', () => {
  for (const [tokens, price, expected] of [
    [1, 0.5, 0],
    [3, 0.5, 2],
    [5, 0.5, 2],
    [7, 0.5, 4],
    [1, 0.500001, 1],
    [1, 0.499999, 0],
    [1, 2.5, 2],
    [3, 2.5, 8],
  ] as const)
    assert.equal(costOf(usage(tokens, 0), prices(price, 0)).input, expected, `${tokens} tokens at ${price}`);
});

test('RUN-62 amounts beyond the exact range of floating point stay exact', () => {
  const { input } = costOf(usage(999_999_999, 0), prices(123.456789, 0));
  assert.equal(input, 123_456_788_877);
});

test('RUN-62 MODEL-27 cached tokens cost their own price, or the input price when there is none', () => {
  assert.deepEqual(amounts(costOf(usage(1000, 10, 400), prices(10, 20, 1))), [6000, 200, 400, 6600]);
  assert.deepEqual(amounts(costOf(usage(1000, 10, 400), prices(10, 20))), [10_000, 200, null, 10_200]);
  assert.deepEqual(amounts(costOf(usage(1000, 10, null), prices(10, 20, 1))), [10_000, 200, null, 10_200]);
  // A provider that counts cached tokens apart from the input must not give a negative cost.
  assert.deepEqual(amounts(costOf(usage(100, 0, 400), prices(10, 20, 1))), [0, 0, 400, 400]);
});

test('RUN-62 a missing price or count makes its term unknown, and the sum too', () => {
  assert.deepEqual(amounts(costOf(usage(10, 10), prices(1, null))), [10, null, null, null]);
  assert.deepEqual(amounts(costOf(usage(10, 10), prices(null, 1))), [null, 10, null, null]);
  assert.deepEqual(amounts(costOf(usage(null, 10), prices(1, 1))), [null, 10, null, null]);
});

test('RUN-63 the cost of a run with several models is the sum, unknown when a part is', () => {
  const known = costOf(usage(10, 10, 5), prices(2, 2, 1));
  const plain = costOf(usage(10, 10), prices(1, 1));
  assert.deepEqual(amounts(addCosts(known, plain)), [20, 30, 5, 55]);
  assert.deepEqual(amounts(addCosts(plain, costOf(usage(1, 1), prices(null, null)))), [null, null, null, null]);
  // A sum over calls with different unit prices has no unit prices.
  assert.deepEqual(addCosts(known, plain).prices, {
    input: null,
    output: null,
    cachedInput: null,
    source: plain.prices.source,
  });
  assert.deepEqual(addCosts(plain, plain).prices, plain.prices);
});

test('RUN-61 MODEL-26 the catalog counts when it has a price, and is never mixed with the configuration', () => {
  const list = createPriceList('EUR', { p: { m: { Input: 7, Output: 8, CachedInput: 9 } } });
  assert.deepEqual(list.pricesOf('p', 'm', entry({ outputCostPerMillionTokens: 3 })), {
    input: null,
    output: 3_000_000,
    cachedInput: null,
    source: 'Catalog',
  });
  assert.deepEqual(list.pricesOf('p', 'm', entry({ cachedInputCostPerMillionTokens: 3 })), {
    input: 7_000_000,
    output: 8_000_000,
    cachedInput: 9_000_000,
    source: 'Configuration',
  });
  assert.equal(list.pricesOf('p', 'm', null).source, 'Configuration');
  assert.equal(list.pricesOf('p', 'other', null).source, 'Unknown');
  assert.equal(list.pricesOf('toString', 'constructor', null).source, 'Unknown');
});

test('RUN-61 a cost is shown in the currency, with the prices it was made of', () => {
  assert.deepEqual(publicCost(costOf(usage(1_500_000, 2), prices(0.25, 10)), 'EUR'), {
    inputCost: 0.375,
    inputPricePerMillionTokens: 0.25,
    outputCost: 0.00002,
    outputPricePerMillionTokens: 10,
    cachedInputCost: null,
    cachedInputPricePerMillionTokens: null,
    totalCost: 0.37502,
    currency: 'EUR',
    source: 'Configuration',
  });
});

test('RUN-38 counts that nobody reported stay null when usage is added up', () => {
  assert.deepEqual(addUsage(usage(1, null), usage(2, null, 3)), usage(3, null, 3));
  assert.equal(reportedUsage(unreportedUsage), null);
  assert.deepEqual(reportedUsage(usage(0, null)), usage(0, null), 'a reported 0 is a report');
});
