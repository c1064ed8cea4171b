import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TreeBudget, type TreeLimits } from '../../../src/engine/control/tree-budget.ts';
import { costOf } from '../../../src/engine/pricing.ts';
import { RunFailure } from '../../../src/engine/run-failure.ts';
import { unreportedUsage } from '../../../src/providers/models/model-usage.ts';

const unlimited: TreeLimits = {
  maxDepth: 3,
  maxTotalTokens: 0,
  maxTotalRuns: 0,
  maxTotalCostMicros: null,
  maxDurationMs: null,
};

const open = (limits: Partial<TreeLimits>) => {
  const clock = { now: 1000 };
  return { clock, budget: new TreeBudget({ ...unlimited, ...limits }, () => clock.now) };
};

const price = { input: 1_000_000, output: null, cachedInput: null, source: 'Catalog' } as const;

const spend = (budget: TreeBudget, inputTokens: number, outputTokens: number | null = null) => {
  const usage = { ...unreportedUsage, inputTokens, outputTokens };
  budget.settle(usage, costOf(usage, price));
};

const exceeded = (error: unknown): boolean =>
  error instanceof RunFailure && error.errorClass === 'QuotaExceeded' && error.type === 'budget_exceeded';

test('RUN-49 the call that reaches the limit is the last one', () => {
  const { budget } = open({ maxTotalTokens: 100 });
  spend(budget, 60, 39);
  budget.check();
  spend(budget, 0, 1);
  assert.throws(() => budget.check(), exceeded);
});

test('RUN-49 a total that the provider reports counts before the parts', () => {
  const { budget } = open({ maxTotalTokens: 100 });
  budget.settle(
    { ...unreportedUsage, inputTokens: 10, outputTokens: 10, totalTokens: 100 },
    costOf(unreportedUsage, price),
  );
  assert.throws(() => budget.check(), exceeded);
});

test('RUN-49 a call without a known price adds nothing to the cost', () => {
  const { budget } = open({ maxTotalCostMicros: 50 });
  spend(budget, 49, 1_000_000);
  budget.check();
  const known = { ...unreportedUsage, inputTokens: 50, outputTokens: 0 };
  budget.settle(known, costOf(known, { ...price, output: 0 }));
  assert.throws(() => budget.check(), exceeded);
});

test('RUN-49 time runs from the start of the root', () => {
  const { budget, clock } = open({ maxDurationMs: 500 });
  clock.now = 1499;
  budget.check();
  assert.equal(budget.remainingMs, 1);
  clock.now = 2000;
  assert.equal(budget.remainingMs, 0);
  assert.throws(() => budget.check(), exceeded);
  assert.equal(open({}).budget.remainingMs, null);
});

test('RUN-48 places are given by depth first, then by count; a refused call takes none', () => {
  const { budget } = open({ maxDepth: 2, maxTotalRuns: 2 });
  assert.equal(budget.admitChild(1), null);
  assert.match(budget.admitChild(3) ?? '', /too deep/);
  assert.equal(budget.admitChild(2), null);
  assert.match(budget.admitChild(1) ?? '', /2 agent calls/);
});

test('RUN-48 a depth of 0 allows no child, a count of 0 or less any number', () => {
  assert.match(open({ maxDepth: 0 }).budget.admitChild(1) ?? '', /too deep/);
  const { budget } = open({ maxTotalRuns: -1 });
  for (let index = 0; index < 100; index += 1) assert.equal(budget.admitChild(1), null);
});

test('RUN-49 the time of a tree counts from the moment at which its run begins, not while it waits in line', () => {
  const { budget, clock } = open({ maxDurationMs: 100 });
  clock.now += 5000;
  budget.begin();
  assert.equal(budget.remainingMs, 100);
  budget.check();
  clock.now += 100;
  assert.throws(() => budget.check(), exceeded);
});
