import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../../../src/contract/schema.ts';
import type { ToolArgumentCondition } from '../../../src/features/approvals/approvals.schema.ts';
import { argumentsHash, conditionHolds } from '../../../src/features/approvals/argument-conditions.rules.ts';

const args: Json = { tags: ['a', 'b'], customer: { tier: 'gold' }, amount: 250 };

test('RULE-4 the hash of the arguments does not depend on the order of their members', () => {
  const hash = '2c92f133418ff278d258cdd9910fec9499b2b7f4d2fb939c17fd84973882535b';
  assert.equal(argumentsHash(args), hash);
  assert.equal(argumentsHash({ amount: 250, customer: { tier: 'gold' }, tags: ['a', 'b'] }), hash);
  assert.notEqual(argumentsHash({ amount: 250, customer: { tier: 'gold' }, tags: ['b', 'a'] }), hash);
});

const vectors: readonly [string, ToolArgumentCondition['operator'], Json, boolean][] = [
  ['customer.tier', 'Equals', 'gold', true],
  ['customer.tier', 'Equals', 'Gold', false],
  ['amount', 'LessThanOrEqual', 250.0, true],
  ['amount', 'Equals', '250', false],
  ['amount', 'NotEquals', '250', false],
  ['customer.level', 'NotEquals', 'gold', false],
  ['customer', 'NotEquals', 'gold', false],
  ['customer.tier', 'In', ['silver', 'gold'], true],
  ['customer.tier', 'NotIn', ['silver'], true],
  ['tags.0', 'Equals', 'a', false],
  ['tags', 'NotIn', ['a'], false],
  ['amount', 'NotIn', ['250'], false],
  ['amount', 'In', [249, 250], true],
  ['toString', 'NotEquals', 'x', false],
];

test('RULE-5 RULE-6 RULE-7 a condition holds only where nothing is in doubt', () => {
  for (const [path, operator, value, expected] of vectors)
    assert.equal(conditionHolds(args, { path, operator, value }), expected, `${path} ${operator} ${String(value)}`);
});
