import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followCalls } from '../../../src/features/agents/call-graph.ts';

const graph = (edges: Readonly<Record<string, readonly string[]>>) => new Map(Object.entries(edges));

test('AGENT-20 the longest path counts, not the first', () => {
  const calls = graph({ a: ['c', 'b'], b: ['c'], c: ['d'], d: ['gone'] });
  assert.deepEqual(followCalls(calls, 'a'), { cycle: null, depth: 3 });
  assert.deepEqual(followCalls(calls, 'd'), { cycle: null, depth: 0 });
});

test('AGENT-20 a cycle is named, wherever it is', () => {
  assert.deepEqual(followCalls(graph({ a: ['a'] }), 'a').cycle, ['a', 'a']);
  assert.deepEqual(followCalls(graph({ a: ['b'], b: ['c'], c: ['b'] }), 'a').cycle, ['b', 'c', 'b']);
});

test('AGENT-20 a graph of any size is followed', () => {
  const chain = new Map(Array.from({ length: 50_000 }, (_, index) => [`n${index}`, [`n${index + 1}`]]));
  assert.equal(followCalls(chain, 'n0').depth, 49_999);
  const layers = Array.from({ length: 40 }, (_, layer) =>
    ['x', 'y', 'z'].map((name): [string, string[]] => [
      `${name}${layer}`,
      ['x', 'y', 'z'].map((next) => `${next}${layer + 1}`),
    ]),
  );
  assert.equal(followCalls(new Map(layers.flat()), 'x0').depth, 39);
});
