import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openApp } from '../support/app.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/metrics.md'), 'utf8');

test('the page of metrics lists each instrument of the service, with its attributes', async (t) => {
  const { app } = await openApp(t, 'http', {
    host: { Metrics: { Path: '/metrics' } },
    service: {
      Observability: { EnableQuotaUsageGauge: true, EnableJobQueueDepthGauge: true },
      RateLimit: { Enabled: true },
      ContentGuard: { Pattern: {} },
    },
  });
  const rows = new Map(
    page
      .split('\n')
      .filter((line) => /^\| `(?:acp|gen_ai)\./.test(line))
      .map((line) => [/`([^`]+)`/.exec(line)?.[1] ?? '', line]),
  );
  const metrics = app.telemetry.metrics.collect();
  assert.deepEqual(
    metrics.map(({ name }) => name),
    [...rows.keys()].sort(),
  );
  const shared = ['gen_ai.agent.name', 'gen_ai.agent.version', 'acp.tenant.id'];
  for (const { name, kind, spec } of metrics) {
    const row = rows.get(name) ?? '';
    if (name === 'acp.quota.limit') continue;
    for (const attribute of spec.attributes)
      assert.ok(
        row.includes(attribute) || (row.includes('agent, ') && shared.includes(attribute)),
        `${name} ${attribute}`,
      );
    assert.ok(row.includes(kind === 'updown' ? 'up-down counter' : kind), `${name} is a ${kind}`);
  }
});

test('OBS-23 without a reader there is no registry, so that nothing is counted', async (t) => {
  const { app } = await openApp(t, 'http');
  assert.equal(app.telemetry.metrics.counts, false);
});
