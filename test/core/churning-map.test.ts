import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChurningMap } from '../../src/core/churning-map.ts';

test('a churning map answers as a Map does, whatever comes and goes', () => {
  const churning = new ChurningMap<string, number>();
  const plain = new Map<string, number>();
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  for (let step = 0; step < 5000; step += 1) {
    const key = `key-${random(40)}`;
    if (random(2) === 0) {
      churning.set(key, step);
      plain.set(key, step);
    } else assert.equal(churning.delete(key), plain.delete(key), key);
    const asked = `key-${random(40)}`;
    assert.equal(churning.get(asked), plain.get(asked));
    assert.equal(churning.size, plain.size);
  }
  assert.deepEqual([...churning.keys()], [...plain.keys()]);
  assert.deepEqual([...churning.values()], [...plain.values()]);
  assert.ok(plain.size > 0, 'something was left to compare');
});
