import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import type { Principal } from '../../../src/core/context.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { type Announcements, type Listener, noAnnouncements } from '../../../src/db/announcements.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import type { SessionTurn } from '../../../src/engine/record/index.ts';
import { createSessionAccess, sessionStore } from '../../../src/features/sessions/index.ts';
import { createSharedSessionTurns } from '../../../src/features/sessions/turns/index.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachDurableStore, openForTwo, type TestStore } from '../../support/store.ts';

// What sessions promise where the processes of a store are several; session-lock.test.ts says it of one that owns its store.

const caller: Principal = {
  kind: 'Host',
  role: 'Admin',
  scopes: null,
  actor: null,
  userId: null,
  apiKey: null,
  permissions: null,
};

const withoutOwners = {
  Enabled: false,
  RequireAuthenticatedOwner: true,
  RefuseUnownedSessions: false,
  ManagementRole: 'Admin',
} as const;

const busy = (error: unknown): boolean => error instanceof AcpError && error.code === 'session-busy';
const full = (error: unknown): boolean => error instanceof AcpError && error.code === 'session-queue-full';
const never = new AbortController().signal;
const lockMs = 14_000;

/** Two processes that hear of each other at once. */
type Heard = Pick<Announcements, 'announce' | 'listen'>;
const connected = (): [Heard, Heard] => {
  const listeners: [Listener[], Listener[]] = [[], []];
  const side = (own: Listener[], other: Listener[]): Heard => ({
    announce: (_topic, key) => {
      for (const { heard } of other) heard(key);
    },
    listen(_topic, listener) {
      own.push(listener);
      return () => undefined;
    },
  });
  return [side(listeners[0], listeners[1]), side(listeners[1], listeners[0])];
};

/** Two processes on one store; by themselves they hear nothing of each other. */
const openTwo = async (
  t: TestContext,
  kind: TestStore,
  announcements: readonly [Heard, Heard] = [noAnnouncements, noAnnouncements],
) => {
  const storages = await openForTwo(t, kind);
  const clock = testClock({ at: 1_000_000, stands: true });
  let ids = 0;
  const process = (storage: RootStorage, heard: Heard) => {
    const turns = createSharedSessionTurns({
      storage,
      batch: storage.batch,
      store: storage.stores(sessionStore),
      access: createSessionAccess(withoutOwners),
      announcements: heard,
      clock,
      log: silentLogger,
      newId: () => `conversation-${ids++}`,
    });
    t.after(() => turns.close());
    const end = async (turn: SessionTurn, how: 'save' | 'release'): Promise<void> => {
      await storage.batch.write(how === 'save' ? turn.save([], null, clock.now()) : turn.release());
      turn.ended();
    };
    const take = (runId: string, agent = 'agent') => turns.take('t', 's', agent, runId, caller);
    return { turns, storage, end, take, wait: (runId: string, order = {}) => turns.wait('t', 's', runId, order) };
  };
  const row = async () => storages[0].stores(sessionStore).get('t', 's');
  return { one: process(storages[0], announcements[0]), two: process(storages[1], announcements[1]), clock, row };
};

/** Whether the place has come to its turn; what is under way in the store has ended by then. */
const isReady = async (ready: Promise<void>): Promise<boolean> => {
  let came = false;
  void ready.then(() => {
    came = true;
  });
  for (let turn = 0; turn < 200 && !came; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  return came;
};

forEachDurableStore('RUN-8 SESS-20 of two processes that come to one session at once, one has it', async (t, store) => {
  for (const opened of [false, true]) {
    const { one, two, row } = await openTwo(t, store);
    if (opened) await one.end(await one.take('before'), 'save');
    for (let round = 0; round < 10; round += 1) {
      const takes = [one, two].map(({ take }, index) => take(`run-${round}-${index}`));
      const [first, second] = await Promise.allSettled(takes);
      const [winner, loser] = first?.status === 'fulfilled' ? [first, second] : [second, first];
      assert.ok(winner?.status === 'fulfilled' && loser?.status === 'rejected' && busy(loser.reason));
      const by = winner === first ? one : two;
      assert.equal((await row())?.active_run_id, `run-${round}-${by === one ? 0 : 1}`);
      await by.end(winner.value, opened ? 'save' : 'release');
    }
  }
});

for (const [how, announced] of [
  ['announced', true],
  ['found by looking', false],
] as const)
  forEachDurableStore(
    `RUN-8 a session that another process gives back is ${how}, first come first`,
    async (t, store) => {
      const { one, two, clock } = await openTwo(t, store, announced ? connected() : undefined);
      const holder = await one.take('run-1');
      const places: { by: typeof one; id: string; position: number; ready: Promise<void> }[] = [];
      for (const [by, id] of [
        [two, 'run-2'],
        [one, 'run-3'],
        [two, 'run-4'],
      ] as const) {
        const place = await by.wait(id, { bounded: true });
        places.push({ by, id, position: place.position, ready: place.ready(never) });
      }
      assert.deepEqual(
        places.map(({ position }) => position),
        [1, 2, 3],
      );
      await one.end(holder, 'save');
      for (const { by, id, ready } of places) {
        if (!announced) assert.equal(by === two && (await isReady(ready)), false, `${id} hears nothing`);
        if (!announced) await clock.advance(1000);
        await eventually(`${id} has its turn`, () => isReady(ready));
        for (const other of [one, two]) await assert.rejects(other.take(`before-${id}`), busy);
        const turn = await by.take(id);
        for (const later of places.slice(places.findIndex((entry) => entry.id === id) + 1))
          assert.equal(await isReady(later.ready), false, `${later.id} waits`);
        await by.end(turn, 'save');
      }
      await two.end(await two.take('last'), 'save');
    },
  );

forEachDurableStore('RUN-8 at most 16 runs wait for a session, over all processes', async (t, store) => {
  const { one, two } = await openTwo(t, store);
  await one.take('run-0');
  for (let waiting = 1; waiting <= 16; waiting += 1)
    assert.equal((await (waiting % 2 === 0 ? one : two).wait(`run-${waiting}`, { bounded: true })).position, waiting);
  for (const { wait } of [one, two]) await assert.rejects(async () => wait('run-17', { bounded: true }), full);
  assert.equal((await two.wait('run-18', {})).position, 17, 'but for a run that was accepted before');
});

forEachDurableStore(
  'RUN-8 a run that stops others comes before those that wait in another process',
  async (t, store) => {
    const { one, two, clock } = await openTwo(t, store);
    const holder = await one.take('run-1');
    const waiting = (await two.wait('run-2', {})).ready(never);
    const ahead = (await one.wait('run-3', { ahead: true })).ready(never);
    await one.end(holder, 'save');
    await clock.advance(1000);
    assert.deepEqual([await isReady(ahead), await isReady(waiting)], [true, false]);
    await one.end(await one.take('run-3'), 'save');
    await clock.advance(1000);
    await eventually('the next', () => isReady(waiting));
  },
);

forEachDurableStore('RUN-8 a turn that a run which stops others took first comes again', async (t, store) => {
  const { one, two, clock } = await openTwo(t, store);
  const holder = await one.take('run-1');
  const waiting = (await two.wait('run-2', {})).ready(never);
  await one.end(holder, 'save');
  await clock.advance(1000);
  assert.ok(await isReady(waiting));
  const ahead = (await one.wait('run-3', { ahead: true })).ready(never);
  await clock.advance(1000);
  assert.ok(await isReady(ahead));
  const taking = two.take('run-2');
  const turn = await one.take('run-3');
  assert.equal(await isReady(taking.then(() => undefined)), false);
  await one.end(turn, 'save');
  await clock.advance(1000);
  await two.end(await taking, 'save');
});

forEachDurableStore(
  'RUN-8 who leaves the line, or does not take the session, lets the next one in',
  async (t, store) => {
    const { one, two, clock, row } = await openTwo(t, store);
    const holder = await one.take('run-1');
    const stop = new AbortController();
    const stopped = (await two.wait('run-2', {})).ready(stop.signal);
    const leaves = await one.wait('run-3', {});
    const last = (await two.wait('run-4', {})).ready(never);
    stop.abort(new Error('stopped'));
    await assert.rejects(stopped, /stopped/);
    await one.end(holder, 'release');
    await clock.advance(1000);
    await leaves.ready(never);
    await leaves.leave();
    await eventually('the last has its turn', async () => {
      await clock.advance(1000);
      return isReady(last);
    });
    assert.equal((await row())?.version, 0, 'it is kept for the one that waits');
    await two.end(await two.take('run-4'), 'release');
    assert.equal(await row(), undefined, 'nobody has saved a turn');
  },
);

forEachDurableStore(
  'RUN-8 a place that is given up, by itself or by its signal, is gone for every process once that is told',
  async (t, store) => {
    const { one, two } = await openTwo(t, store);
    const held = async () => (await two.turns.holder('t', 's'))?.runId ?? null;
    const place = await one.wait('run-1', {});
    assert.equal(await held(), 'run-1');
    await place.leave();
    assert.equal(await held(), null);
    const holder = await one.take('run-2');
    const stop = new AbortController();
    const stopped = (await one.wait('run-3', {})).ready(stop.signal);
    await one.end(holder, 'save');
    stop.abort(new Error('stopped'));
    await assert.rejects(stopped, /stopped/);
    assert.equal(await held(), null);
  },
);

forEachDurableStore(
  'RUN-9 the lock and the place of a process that is gone are free within 15 s, and its late turn is a conflict',
  async (t, store) => {
    const { one, two, clock, row } = await openTwo(t, store);
    await one.end(await one.take('run-0'), 'save');
    const late = await one.take('run-1');
    await one.wait('run-2', {});
    one.turns.close();
    const place = await two.wait('run-3', {});
    assert.equal(place.position, 2);
    const ready = place.ready(never);
    await clock.advance(lockMs);
    assert.equal(await isReady(ready), false, 'not before its time');
    await clock.advance(1000);
    await eventually('the lock has lapsed', () => isReady(ready));
    const turn = await two.take('run-3');
    await assert.rejects(one.storage.batch.write(late.save([], null, 1)), { name: 'ConditionFailedError' });
    await one.storage.batch.write(late.release());
    assert.equal((await row())?.active_run_id, 'run-3', 'nor does it free the session');
    await two.end(turn, 'release');
    await assert.rejects(one.storage.batch.write(late.save([], null, 1)), { name: 'ConditionFailedError' });
    assert.deepEqual([(await row())?.version, (await row())?.last_run_id], [1, 'run-0']);
  },
);

forEachDurableStore('RUN-9 locks and places are renewed while their process lives', async (t, store) => {
  const { one, two, clock } = await openTwo(t, store);
  const holder = await one.take('run-1');
  const ready = (await one.wait('run-2', {})).ready(never);
  for (let third = 0; third < 12; third += 1) {
    await clock.advance(4000);
    await assert.rejects(two.take('run-3'), busy);
  }
  await one.end(holder, 'save');
  await assert.rejects(two.take('run-3'), busy);
  await clock.advance(1000);
  await eventually('its turn', () => isReady(ready));
});

forEachDurableStore(
  'RUN-9 SESS-2 what a process that is gone left of a first turn is as if it were not there',
  async (t, store) => {
    const { one, two, clock, row } = await openTwo(t, store);
    await one.take('run-1', 'another');
    one.turns.close();
    assert.equal(await two.turns.agentOf('t', 's'), 'another');
    await assert.rejects(two.take('run-2'), { code: 'session-agent-mismatch' });
    await clock.advance(lockMs + 1);
    assert.equal(await two.turns.agentOf('t', 's'), null);
    await two.end(await two.take('run-2'), 'save');
    assert.deepEqual([(await row())?.agent_name, (await row())?.version], ['agent', 1]);
    await assert.rejects(two.take('run-3', 'another'), { code: 'session-agent-mismatch' });
  },
);

forEachDurableStore('RUN-9 a further attempt of a run takes the session that the lost one holds', async (t, store) => {
  const { one, two, row } = await openTwo(t, store);
  await one.take('run-1');
  const place = await two.wait('run-1', {});
  await place.ready(never);
  await two.end(await two.take('run-1'), 'save');
  assert.deepEqual([(await row())?.version, (await row())?.active_run_id], [1, null]);
});

forEachDurableStore('RUN-8 a run that waits finds a session that was deleted free', async (t, store) => {
  const { one, two, clock, row } = await openTwo(t, store);
  const holder = await one.take('run-1');
  const ready = (await two.wait('run-2', {})).ready(never);
  await one.storage.batch.write(one.storage.stores(sessionStore).release('t', 's', 'run-1'));
  holder.ended();
  assert.equal(await row(), undefined);
  await clock.advance(1000);
  await eventually('its turn', () => isReady(ready));
  await two.end(await two.take('run-2'), 'save');
  assert.equal((await row())?.version, 1);
});
