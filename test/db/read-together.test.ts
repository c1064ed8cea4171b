import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTogether } from '../../src/db/read-together.ts';

const counting = () => {
  const queries: (readonly string[])[] = [];
  const read = readTogether(3, async (tenantId, keys) => {
    queries.push([tenantId, ...keys]);
    if (keys.includes('bad')) throw new Error('away');
    return new Map(keys.filter((key) => key !== 'none').map((key) => [key, `${tenantId} ${key}`]));
  });
  return { queries, read, one: (key: string) => read('red', key) };
};

test('what is asked for in one turn is read by few queries, each key once', async () => {
  const { queries, read, one } = counting();
  assert.deepEqual(await Promise.all(['a', 'b', 'a', 'none', 'c'].map(one)), [
    'red a',
    'red b',
    'red a',
    undefined,
    'red c',
  ]);
  assert.deepEqual(queries.splice(0), [
    ['red', 'a', 'b', 'none'],
    ['red', 'c'],
  ]);
  assert.equal(await one('a'), 'red a');
  assert.deepEqual(queries.splice(0), [['red', 'a']], 'what was read is not kept');
  assert.deepEqual(await Promise.all([read('red', 'a'), read('blue', 'a')]), ['red a', 'blue a']);
  assert.deepEqual(queries, [
    ['red', 'a'],
    ['blue', 'a'],
  ]);
});

test('a query that fails is told to those who wait for it, and to nobody else', async () => {
  const { one } = counting();
  const ends = await Promise.allSettled(['a', 'bad', 'b', 'c'].map(one));
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected', 'fulfilled'],
  );
  assert.equal(await one('a'), 'red a');
});
