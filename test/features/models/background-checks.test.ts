import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createModelHealth } from '../../../src/features/models/model-health.ts';
import { createModelProviders } from '../../../src/providers/models/index.ts';
import { testClock } from '../../support/clock.ts';
import { startProviderSimulator } from '../../support/providers/simulator.ts';

const world = async (t: TestContext, backgroundIntervalMs: number | null) => {
  const simulator = await startProviderSimulator({ models: () => ({ status: 200, body: { data: [{ id: 'any' }] } }) });
  const providers = createModelProviders(
    { Compatible: { local: { Endpoint: `${simulator.url}/v1` }, other: { Endpoint: `${simulator.url}/v1` } } } as never,
    { log: () => undefined },
  );
  const clock = testClock({ stands: true });
  const health = createModelHealth({
    providers,
    settings: { cacheTtlMs: 1, backgroundIntervalMs },
    clock,
  });
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
