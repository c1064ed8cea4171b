import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, inTime } from './eventually.ts';

test('what is looked for is given as soon as it is there', async () => {
  const looks = [false, null, undefined, 0];
  assert.equal(await eventually('a number', () => looks.shift()), 0);
  assert.equal(looks.length, 0);
});

test('what does not come about within its bound is named', async () => {
  await assert.rejects(
    eventually('a second dawn', async () => false, 20),
    /In 20 ms this did not come about: a second dawn/,
  );
});

test('what is awaited has a bound and a name, and is given as it comes', async () => {
  assert.equal(await inTime('a number', Promise.resolve(0), 20), 0);
  await assert.rejects(inTime('a word', Promise.reject(new Error('none'))), /^Error: none$/);
  const never = Promise.withResolvers<void>().promise;
  await assert.rejects(inTime('a second dawn', never, 20), /In 20 ms this did not come about: a second dawn/);
});
