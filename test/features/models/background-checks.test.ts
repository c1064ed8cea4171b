import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { createModelHealth } from '../../../src/features/models/model-health.ts';
import { createModelProviders } from '../../../src/providers/models/index.ts';
import { startProviderSimulator } from '../../support/providers/simulator.ts';

const world = async (t: TestContext, backgroundIntervalMs: number | null) => {
  const simulator = await startProviderSimulator({ models: () => ({ status: 200, body: { data: [{ id: 'any' }] } }) });
  const providers = createModelProviders(
    { Compatible: { local: { Endpoint: `${simulator.url}/v1` }, other: { Endpoint: `${simulator.url}/v1` } } } as never,
    { log: () => undefined },
  );
  const health = createModelHealth({
    providers,
    settings: { cacheTtlMs: 1, backgroundIntervalMs },
    clock: systemClock,
  });
  t.after(async () => {
    await health.background.stop();
    await providers.close();
    await simulator.close();
  });
  /** Resolves when so many lists were asked for; every look is a turn of the event loop. */
  const asked = async (count: number): Promise<void> => {
    while (simulator.listed.length < count) await new Promise((resolve) => setImmediate(resolve));
  };
  /** Resolves when both results are known. */
  const checked = async (): Promise<void> => {
    while (providers.list().some((provider) => health.known(provider).checkedAt === null))
      await new Promise((resolve) => setImmediate(resolve));
  };
  return { simulator, health, asked, checked };
};

test('MODEL-36 with an interval each provider is checked that often, until the service ends', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { simulator, health, asked, checked } = await world(t, 5000);
  health.background.start(() => true);
  t.mock.timers.tick(4999);
  assert.equal(simulator.listed.length, 0);
  t.mock.timers.tick(1);
  await asked(2);
  await checked();
  t.mock.timers.tick(5000);
  await asked(4);
  await health.background.stop();
  t.mock.timers.tick(60_000);
  assert.equal(simulator.listed.length, 4);
});

test('MODEL-36 of several processes only the one that may act asks', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { simulator, health, asked } = await world(t, 5000);
  let mayAct = false;
  health.background.start(() => mayAct);
  t.mock.timers.tick(60_000);
  assert.equal(simulator.listed.length, 0);
  mayAct = true;
  t.mock.timers.tick(5000);
  await asked(2);
});

test('MODEL-36 without an interval nobody is asked', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { simulator, health } = await world(t, null);
  health.background.start(() => true);
  t.mock.timers.tick(3_600_000);
  assert.equal(simulator.listed.length, 0);
});
