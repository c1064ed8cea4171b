import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CompiledQuery } from 'kysely';
import { readTogether } from '../../src/db/read-together.ts';

const counting = () => {
  const messages: string[][] = [];
  const read = readTogether(async (queries) => {
    const texts = queries.map(({ sql }) => sql);
    messages.push(texts);
    if (texts.includes('bad')) throw new Error('away');
    return texts.map((text) => [`row of ${text}`]);
  });
  return { messages, one: (text: string) => read(CompiledQuery.raw(text, [])) };
};

test('reads of one turn are one message, and each has its own rows', async () => {
  const { messages, one } = counting();
  assert.deepEqual(await Promise.all(['a', 'b', 'a'].map(one)), [['row of a'], ['row of b'], ['row of a']]);
  assert.deepEqual(await one('c'), ['row of c']);
  assert.deepEqual(messages.splice(0), [['a', 'b', 'a'], ['c']]);
  await Promise.all(Array.from({ length: 60 }, (_, index) => one(String(index))));
  assert.deepEqual(
    messages.map(({ length }) => length),
    [50, 10],
  );
});

test('a message that fails is told to those who wait for it, and to nobody else', async () => {
  const { one } = counting();
  const ends = await Promise.allSettled(['bad', ...Array.from({ length: 50 }, () => 'a')].map(one));
  assert.deepEqual(
    ends.map(({ status }) => status),
    [...Array.from({ length: 50 }, () => 'rejected'), 'fulfilled'],
  );
  assert.deepEqual(await one('a'), ['row of a']);
});
