import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTogether } from '../../src/db/read-together.ts';

const counting = () => {
  const queries: (readonly string[])[] = [];
  const one = readTogether(3, async (keys) => {
    queries.push(keys);
    if (keys.includes('bad')) throw new Error('away');
    return new Map(keys.filter((key) => key !== 'none').map((key) => [key, key.toUpperCase()]));
  });
  return { queries, one };
};

test('what is asked for in one turn is read by few queries, each key once', async () => {
  const { queries, one } = counting();
  assert.deepEqual(await Promise.all(['a', 'b', 'a', 'none', 'c'].map(one)), ['A', 'B', 'A', undefined, 'C']);
  assert.deepEqual(queries, [['a', 'b', 'none'], ['c']]);
  assert.equal(await one('a'), 'A');
  assert.deepEqual(queries.at(-1), ['a'], 'what was read is not kept');
});

test('a query that fails is told to those who wait for it, and to nobody else', async () => {
  const { one } = counting();
  const ends = await Promise.allSettled(['a', 'bad', 'b', 'c'].map(one));
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected', 'fulfilled'],
  );
  assert.equal(await one('a'), 'A');
});
