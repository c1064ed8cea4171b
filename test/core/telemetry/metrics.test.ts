import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetricRegistry, noMetrics } from '../../../src/core/telemetry/metrics.ts';

const spec = ['A test.', '{thing}'] as const;

test('counters, histograms and gauges hold one series for each set of attributes; null is left out', () => {
  const registry = createMetricRegistry();
  const counter = registry.counter('b.count', ...spec, ['x', 'y']);
  counter.add(2, ['one', null]);
  counter.add(3, ['one', null]);
  counter.add(1, ['one', true]);
  const histogram = registry.histogram('c.time', ...spec, ['x'], [1, 10]);
  for (const value of [0.5, 1, 2, 100]) histogram.record(value, ['one']);
  let level = 4;
  registry.gauge('a.level', ...spec, [], () => [{ value: level, values: [] }]);
  const [gauge, counted, timed] = registry.collect();
  assert.deepEqual(
    gauge?.points.map(({ value }) => value),
    [4],
  );
  assert.deepEqual(
    counted?.points.map(({ attributes, value }) => [attributes, value]),
    [
      [{ x: 'one' }, 5],
      [{ x: 'one', y: true }, 1],
    ],
  );
  assert.deepEqual(timed?.points[0]?.histogram, { count: 4, min: 0.5, max: 100, buckets: [2, 1, 1] });
  assert.equal(timed?.points[0]?.value, 103.5);
  level = 1;
  assert.deepEqual(
    registry.collect()[0]?.points.map(({ value }) => value),
    [1],
  );
});

test('OBS-21 series beyond the limit become one, so that names in requests cannot fill the memory', () => {
  const registry = createMetricRegistry();
  const counter = registry.counter('n', ...spec, ['name']);
  for (let at = 0; at < 2500; at += 1) counter.add(1, [`name-${at}`]);
  const points = registry.collect()[0]?.points ?? [];
  assert.equal(points.length, 2001);
  assert.deepEqual(points.at(-1), { attributes: { 'otel.metric.overflow': true }, value: 500, histogram: null });
});

test('two instruments cannot have one name; without observability nothing is counted', () => {
  const registry = createMetricRegistry();
  registry.counter('n', ...spec, []);
  assert.throws(() => registry.gauge('n', ...spec, [], () => []), /Two instruments have the name n/);
  noMetrics.counter('n', ...spec, []).add(1, []);
  assert.deepEqual(noMetrics.collect(), []);
});
