import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testClock } from './clock.ts';

test('the clock of tests fires what is due in its order and at its time, each awaited before the next', async () => {
  const clock = testClock({ at: 1000, stands: true });
  const fired: string[] = [];
  const note = (name: string) => async () => {
    const at = clock.now();
    await new Promise((resolve) => setImmediate(resolve));
    fired.push(`${name} ${at}`);
  };
  clock.after(50, note('late'));
  clock.every(20, note('every'));
  clock.after(10, note('soon')).unref();
  clock.after(15, note('never')).stop();
  await clock.advance(50);
  assert.deepEqual(fired, ['soon 1010', 'every 1020', 'every 1040', 'late 1050']);
  assert.equal(clock.now(), 1050);
});

test('work that fired work starts is fired in the same move when it is due, unless it was stopped', async () => {
  const clock = testClock({ at: 0, stands: true });
  const fired: number[] = [];
  clock.after(10, () => {
    clock.after(5, () => fired.push(clock.now()));
    clock.after(90, () => fired.push(clock.now()));
  });
  await clock.advance(99);
  assert.deepEqual(fired, [15]);
  await clock.advance(1);
  assert.deepEqual(fired, [15, 100]);
});

test('after a jump each timer that came due fires once, with the new time', async () => {
  const clock = testClock({ at: 0, stands: true });
  const fired: string[] = [];
  const every = clock.every(10, () => fired.push(`every ${clock.now()}`));
  clock.after(500, () => {
    fired.push(`once ${clock.now()}`);
  });
  clock.after(2000, () => fired.push('not yet'));
  await clock.jump(1000);
  assert.deepEqual(fired, ['every 1000', 'once 1000']);
  await clock.advance(10);
  assert.equal(fired.at(-1), 'every 1010');
  every.stop();
  await clock.advance(900);
  assert.equal(fired.length, 3);
});

test('a clock that was set back tells an earlier time, and what waits is not late for it', async () => {
  const clock = testClock({ at: 10_000, stands: true });
  const fired: number[] = [];
  clock.after(100, () => fired.push(clock.now()));
  clock.setBack(4000);
  assert.equal(clock.now(), 6000);
  await clock.advance(100);
  assert.deepEqual(fired, [6100]);
});

test('a clock that was not told to stand goes on by itself, from where it was moved to', async () => {
  const clock = testClock({ at: 5_000_000 });
  const first = Promise.withResolvers<number>();
  clock.after(1, () => first.resolve(clock.now()));
  assert.ok((await first.promise) >= 5_000_001);
  await clock.advance(1_000_000);
  assert.ok(clock.now() >= 6_000_001);
  const second = Promise.withResolvers<void>();
  let left = 2;
  const ticks = clock.every(1, () => {
    left -= 1;
    if (left === 0) second.resolve();
  });
  const hold = setTimeout(() => second.reject(new Error('It did not go on.')), 5000);
  await second.promise;
  clearTimeout(hold);
  ticks.stop();
});
