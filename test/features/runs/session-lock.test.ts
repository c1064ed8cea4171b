import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import type { Principal } from '../../../src/core/context.ts';
import { createSessionAccess, sessionStore } from '../../../src/features/sessions/index.ts';
import { createOwnSessionTurns } from '../../../src/features/sessions/turns/index.ts';
import { testClock } from '../../support/clock.ts';
import { forEachStore, openTestStorage, type TestStore } from '../../support/store.ts';

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

/** Two instances on one store, with one clock that the test turns. */
const openInstances = async (t: TestContext, store: TestStore) => {
  const storage = await openTestStorage(t, store);
  const clock = testClock({ at: 1_000_000, stands: true });
  let ids = 0;
  const instance = () => {
    const turns = createOwnSessionTurns({
      storage,
      batch: storage.batch,
      store: storage.stores(sessionStore),
      access: createSessionAccess(withoutOwners),
      clock,
      newId: () => `conversation-${ids++}`,
    });
    t.after(() => turns.close());
    return turns;
  };
  return { storage, first: instance(), second: instance(), pass: clock.advance };
};

forEachStore('RUN-9 a lock is renewed while its instance lives, and other instances see it', async (t, store) => {
  const { first, second, pass } = await openInstances(t, store);
  await first.take('t', 's', 'agent', 'run-1', caller);
  for (let round = 0; round < 3; round += 1) {
    for (let third = 0; third < 3; third += 1) await pass(4000);
    await assert.rejects(second.take('t', 's', 'agent', 'run-2', caller), busy);
  }
});

forEachStore(
  'RUN-9 SESS-21 the lock of a crashed instance is free within 15 s, and its late turn is a conflict',
  async (t, store) => {
    const { storage, first, second, pass } = await openInstances(t, store);
    const lost = await first.take('t', 's', 'agent', 'run-1', caller);
    first.close();
    await pass(14_000);
    await assert.rejects(second.take('t', 's', 'agent', 'run-2', caller), busy);
    await pass(1);
    const turn = await second.take('t', 's', 'agent', 'run-3', caller);
    await assert.rejects(storage.write(lost.save([], null, 1)), { name: 'ConditionFailedError' });
    await storage.write(turn.save([], null, 2));
    const row = await storage.stores(sessionStore).get('t', 's');
    assert.deepEqual([row?.version, row?.last_run_id, row?.active_run_id], [1, 'run-3', null]);
  },
);

forEachStore('RUN-9 a further attempt of a run takes the session that the lost one holds', async (t, store) => {
  const { storage, first, second } = await openInstances(t, store);
  await first.take('t', 's', 'agent', 'run-1', caller);
  await assert.rejects(second.take('t', 's', 'agent', 'run-2', caller), busy);
  const again = await second.take('t', 's', 'agent', 'run-1', caller);
  await storage.write(again.save([], null, 1));
  const row = await storage.stores(sessionStore).get('t', 's');
  assert.deepEqual([row?.version, row?.active_run_id], [1, null]);
});

forEachStore(
  'RUN-8 a session that is freed goes to the next in line before anybody else can take it',
  async (t, store) => {
    const { storage, first } = await openInstances(t, store);
    const turn = await first.take('t', 's', 'agent', 'run-1', caller);
    const place = await first.wait('t', 's', 'run-2', { bounded: true });
    assert.equal(place.position, 1);
    await storage.write(turn.save([], null, 1));
    turn.ended();
    await assert.rejects(first.take('t', 's', 'agent', 'run-3', caller), busy);
    await place.ready(new AbortController().signal);
    await first.take('t', 's', 'agent', 'run-2', caller);
  },
);

forEachStore('RUN-8 who leaves the line, or does not take the session, lets the next one in', async (t, store) => {
  const { storage, first } = await openInstances(t, store);
  const turn = await first.take('t', 's', 'agent', 'run-1', caller);
  const places = await Promise.all(['run-2', 'run-3', 'run-4'].map((id) => first.wait('t', 's', id, {})));
  const stop = new AbortController();
  const second = places[0]?.ready(stop.signal);
  stop.abort(new Error('stopped'));
  await assert.rejects(second ?? Promise.resolve(), /stopped/);
  await storage.write(turn.release());
  turn.ended();
  await places[1]?.ready(new AbortController().signal);
  places[1]?.leave();
  await places[2]?.ready(new AbortController().signal);
  places[2]?.leave();
  assert.equal(first.busy('t', 's'), false);
  assert.equal((await first.wait('t', 's', 'run-5', {})).position, 0);
});

forEachStore(
  'SESS-1 a first turn that saves nothing leaves no session, and sessions belong to their tenant',
  async (t, store) => {
    const { storage, first } = await openInstances(t, store);
    const turn = await first.take('t', 's', 'agent', 'run-1', caller);
    const other = await first.take('u', 's', 'another', 'run-2', caller);
    assert.equal(await first.agentOf('t', 's'), 'agent');
    assert.equal(await first.agentOf('u', 's'), 'another');
    await storage.write(turn.release());
    await storage.write(other.save([], null, 1));
    turn.ended();
    other.ended();
    assert.equal(await first.agentOf('t', 's'), null);
    assert.equal(await first.agentOf('u', 's'), 'another');
  },
);
