import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHealth } from '../../../src/features/platform/health.ts';
import type { StoreSharing } from '../../../src/features/platform/index.ts';

const parts = {
  migrating: false,
  storeTrouble: () => null,
  lifecycle: { draining: false },
  modelsDegraded: () => false,
  sharing: null,
};

test('OBS-33 the store is looked at once a second at most; probes between share what it said', async () => {
  let at = 5000;
  let looks = 0;
  let answers = true;
  const health = createHealth({
    ...parts,
    async probeStore() {
      looks += 1;
      if (!answers) throw new Error('The store is away.');
    },
    now: () => at,
  });
  const many = async () => (await Promise.all(Array.from({ length: 20 }, health))).map(({ status }) => status);
  assert.deepEqual([...new Set(await many())], ['Healthy']);
  answers = false;
  at += 999;
  assert.deepEqual([...new Set(await many())], ['Healthy']);
  assert.equal(looks, 1);
  at += 1;
  assert.deepEqual([...new Set(await many())], ['Unhealthy']);
  assert.equal(looks, 2);
  answers = true;
  // A clock that is set back must not keep an old answer for as long.
  at -= 3_600_000;
  assert.deepEqual([...new Set(await many())], ['Healthy']);
  assert.equal(looks, 3);
});

test('OBS-33 a store that hangs is given up after 2 s', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const health = createHealth({ ...parts, probeStore: () => new Promise(() => undefined), now: () => 0 });
  const asked = health();
  let answered = false;
  void asked.then(() => {
    answered = true;
  });
  t.mock.timers.tick(1999);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(answered, false);
  t.mock.timers.tick(1);
  assert.deepEqual(await asked, { status: 'Unhealthy' });
});

test('a process that cannot decide what others have changed is not ready, and one that hears, dates or lays apart badly is degraded', async () => {
  const well: StoreSharing = {
    staleState: () => [],
    heldFor: () => null,
    hearsOthers: () => true,
    clockOffsetMs: () => 0,
    isClockOff: () => false,
    missingPartitions: () => [],
    replica: () => null,
  };
  const status = async (sharing: Partial<StoreSharing>) =>
    (
      await createHealth({
        ...parts,
        sharing: { ...well, ...sharing },
        probeStore: async () => undefined,
        now: () => 0,
      })()
    ).status;
  assert.equal(await status({}), 'Healthy');
  assert.equal(await status({ staleState: () => ['emergencyStops'] }), 'Unhealthy');
  assert.equal(await status({ hearsOthers: () => false }), 'Degraded');
  assert.equal(await status({ isClockOff: () => true, clockOffsetMs: () => 90_000 }), 'Degraded');
  assert.equal(await status({ missingPartitions: () => ['run_events_20261123'] }), 'Degraded');
});
