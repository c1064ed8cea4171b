import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStoreClock } from '../../src/db/store-clock.ts';
import { testClock } from '../support/clock.ts';

/** A store with a time of its own, and a process whose time is told by the test; both pass by `elapse` alone. */
const world = ({ offsetMs = 0 } = {}) => {
  const clock = testClock({ at: 5_000_000 + offsetMs, stands: true });
  const told: string[] = [];
  const there = {
    clock,
    told,
    elapsed: 0,
    storeTime: 5_000_000,
    /** How long a question takes, each way. */
    wayMs: 1,
    /** How long its answer lies unread then, as that of a process that stands still. */
    unreadMs: 0,
    isAway: false,
    pass(ms: number): void {
      there.elapsed += ms;
      there.storeTime += ms;
    },
  };
  const time = createStoreClock({
    clock,
    elapsed: () => there.elapsed,
    async read() {
      there.pass(there.wayMs);
      if (there.isAway) throw new Error('away');
      const { storeTime } = there;
      there.pass(there.wayMs + there.unreadMs);
      return storeTime;
    },
    log: {
      warn: (_fields, message) => void told.push(message),
      error: (fields, message) => void told.push(`${fields['offsetMs']}: ${message}`),
    },
  });
  return { ...there, there, time };
};

test('the time of a store is told whatever the time of the process is', async () => {
  for (const offsetMs of [-120_000, 0, 120_000]) {
    const { time, there } = world({ offsetMs });
    await time.start();
    assert.equal(time.clock.now(), there.storeTime);
    there.pass(1234);
    assert.equal(time.clock.now(), there.storeTime, 'also between two looks');
  }
});

test('a process whose time is changed goes on by the time of the store, at once', async () => {
  const { time, there, clock } = world();
  await time.start();
  clock.setAhead(120_000);
  assert.equal(time.clock.now(), there.storeTime);
  clock.setBack(240_000);
  assert.equal(time.clock.now(), there.storeTime);
});

test('a clock that is off by more than a second is told, once, and so is that it is right again', async () => {
  const { time, there, clock, told } = world();
  const passTogether = async (ms: number): Promise<void> => {
    there.pass(ms);
    await clock.advance(ms);
  };
  await time.start();
  clock.setAhead(900);
  await passTogether(5000);
  assert.deepEqual([time.isOff(), told], [false, []]);
  clock.setAhead(3000);
  assert.equal(time.isOff(), true, 'without waiting for the next look');
  for (let looks = 0; looks < 4; looks += 1) await passTogether(5000);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /^38\d\d: The clock of this machine is not that of the store/);
  clock.setBack(3900);
  await passTogether(5000);
  assert.equal(time.isOff(), false);
  assert.match(told[1] ?? '', /again/);
});

test('a question that took long changes nothing, unless somebody has set the clock of the store', async () => {
  const { time, there, clock } = world();
  await time.start();
  there.wayMs = 4000;
  await clock.advance(5000);
  assert.equal(time.clock.now(), there.storeTime);
  there.wayMs = 1;
  there.storeTime += 60_000;
  await clock.advance(5000);
  assert.equal(time.clock.now(), there.storeTime);
});

test('a process that stood still between question and answer goes on by what it knew, however old that is', async () => {
  const { time, there, clock } = world();
  await time.start();
  there.pass(600_000);
  there.unreadMs = 17_000;
  await clock.advance(5000);
  assert.equal(time.clock.now(), there.storeTime);
  there.unreadMs = 0;
  // Meanwhile the store has drifted.
  there.storeTime += 100;
  await clock.advance(5000);
  assert.equal(time.clock.now(), there.storeTime);
});

test('while the store cannot be asked its last time goes on, and a start without it fails', async () => {
  const { time, there, clock } = world();
  await time.start();
  there.isAway = true;
  await clock.advance(50_000);
  there.pass(50_000);
  assert.equal(time.clock.now(), there.storeTime);
  const dead = world();
  dead.there.isAway = true;
  await assert.rejects(dead.time.start(), { message: 'away' });
});

test('a store that has no time of its own goes by the clock of the process', async () => {
  const clock = testClock({ at: 1, stands: true });
  const log = { warn: () => undefined, error: () => undefined };
  const time = createStoreClock({ clock, read: null, log });
  await time.start();
  assert.equal(time.clock, clock);
  clock.setAhead(1e9);
  assert.deepEqual([time.offsetMs(), time.isOff()], [0, false]);
});
