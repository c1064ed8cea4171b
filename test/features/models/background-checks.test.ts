import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../../../src/core/logger.ts';
import { modelsFeature } from '../../../src/features/models/index.ts';
import { createModelProviders } from '../../../src/providers/models/index.ts';
import { openApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { instanceStateOf } from '../../support/instance-state.ts';
import { startProviderSimulator } from '../../support/providers/simulator.ts';
import { openTestStorage } from '../../support/store.ts';

const world = async (t: TestContext, backgroundIntervalMs: number | null) => {
  const simulator = await startProviderSimulator({ models: () => ({ status: 200, body: { data: [{ id: 'any' }] } }) });
  const providers = createModelProviders(
    { Compatible: { local: { Endpoint: `${simulator.url}/v1` }, other: { Endpoint: `${simulator.url}/v1` } } } as never,
    { log: () => undefined },
  );
  const clock = testClock({ stands: true });
  const state = instanceStateOf(true, clock.now);
  const { health } = modelsFeature({
    ...{ providers, clock, storeClock: clock, state, isShared: false, log: silentLogger },
    storage: await openTestStorage(t),
    settings: { cacheTtlMs: 1, backgroundIntervalMs },
    allows: () => true,
  });
  await state.load();
  t.after(async () => {
    await health.background.stop();
    await providers.close();
    await simulator.close();
  });
  return { simulator, health, clock };
};

test('MODEL-36 with an interval each provider is checked that often, until the service ends', async (t) => {
  const { simulator, health, clock } = await world(t, 5000);
  health.background.start(() => true);
  await clock.advance(4999);
  assert.equal(simulator.listed.length, 0);
  await clock.advance(1);
  assert.equal(simulator.listed.length, 2);
  await clock.advance(5000);
  assert.equal(simulator.listed.length, 4);
  await health.background.stop();
  await clock.advance(60_000);
  assert.equal(simulator.listed.length, 4);
});

test('MODEL-36 of several processes only the one that may act asks', async (t) => {
  const { simulator, health, clock } = await world(t, 5000);
  let mayAct = false;
  health.background.start(() => mayAct);
  await clock.advance(60_000);
  assert.equal(simulator.listed.length, 0);
  mayAct = true;
  await clock.advance(5000);
  assert.equal(simulator.listed.length, 2);
});

test('MODEL-36 without an interval nobody is asked', async (t) => {
  const { simulator, health, clock } = await world(t, null);
  health.background.start(() => true);
  await clock.advance(3_600_000);
  assert.equal(simulator.listed.length, 0);
});

test('MODEL-36 where a store has one owner a check writes nothing', async (t) => {
  const clock = testClock();
  const app = await openApp(t, 'http', {
    clock,
    simulator: { models: () => ({ status: 200, body: { data: [{ id: 'any' }] } }) },
    service: { Health: { BackgroundInterval: '5s' }, Egress: { AllowPrivateNetworkTargets: true } },
  });
  const before = await app.store.text();
  await clock.advance(5000);
  await eventually('it asks', () => app.simulator.listed.length > 0);
  await eventually('its result is shown', async () =>
    (await app.client.models.health({ query: { refresh: false } })).body.some(({ status }) => status === 'Healthy'),
  );
  assert.equal(await app.store.text(), before);
});
