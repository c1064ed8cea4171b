import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetricRegistry } from '../../../src/core/telemetry/metrics.ts';
import { storeValues } from '../../../src/core/telemetry/store-values.ts';
import { createTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import { createJobTelemetry } from '../../../src/scheduler/job-telemetry.ts';

/** A gauge over a store that the test can break, and how often it was read. */
const world = (everyMs: number) => {
  const metrics = createMetricRegistry();
  const warnings: string[] = [];
  const lifecycle = { draining: false };
  const store = { reads: 0, fails: false };
  const log = { warn: (_fields: Record<string, unknown>, message: string) => void warnings.push(message) };
  const values = storeValues(metrics, { everyMs, lifecycle, log }, async () => {
    store.reads += 1;
    if (store.fails) throw new Error('The store is away.');
    return [store.reads];
  });
  metrics.gauge('level', 'A test.', '{thing}', [], () => values().map((value) => ({ value, values: [] })));
  const level = async () => (await metrics.gather())[0]?.points.map(({ value }) => value);
  return { level, store, lifecycle, warnings };
};

test('OBS-23 the store is read once in the interval, whoever asks meanwhile', async () => {
  const { level, store } = world(3_600_000);
  assert.deepEqual(await Promise.all([level(), level(), level()]), [[1], [1], [1]]);
  assert.deepEqual(await level(), [1]);
  assert.equal(store.reads, 1);
});

test('OBS-23 while the store fails there is no value, and while the service stops the last one stands', async () => {
  const { level, store, lifecycle, warnings } = world(0);
  assert.deepEqual(await level(), [1]);
  store.fails = true;
  assert.deepEqual(await level(), []);
  assert.deepEqual(warnings, ['Metrics could not be read from the store']);
  store.fails = false;
  assert.deepEqual(await level(), [3]);
  lifecycle.draining = true;
  assert.deepEqual(await level(), [3]);
  assert.equal(store.reads, 3);
});

test('OBS-21 so many lanes are told apart, the rest is other', () => {
  const settings = {
    enabled: true,
    persistSpans: false,
    successSampleRatio: 0,
    alwaysPersistFailures: false,
    maxSpansPerRun: 1,
    recordSensitiveData: false,
    includeAgentVersion: false,
  };
  const telemetry = createTelemetry(settings, true);
  const { laneName } = createJobTelemetry(telemetry, 2, () => 0);
  assert.deepEqual(['a', 'b', 'c', 'a', 'd'].map(laneName), ['a', 'b', 'other', 'a', 'other']);
});
