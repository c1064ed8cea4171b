import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { enqueue, followToEnd, runJson } from '../runs/run-calls.ts';

const scraped = async (app: TestApp, pattern: RegExp): Promise<string[]> => {
  const text = await (await fetch(`${app.url}/metrics`)).text();
  return text.split('\n').filter((line) => pattern.test(line));
};

const host = { Metrics: { Path: '/metrics' } };

overHttp('OBS-21 lanes beyond the configured number are one in the metrics', async (open) => {
  const app = await open({
    host,
    agents: [{ name: 'helper' }],
    service: {
      Observability: { MaxJobLaneCardinality: 2 },
      Scheduling: { Lanes: ['first', 'second', 'third', 'fourth'] },
    },
  });
  for (const lane of ['first', 'second', 'third', 'fourth'])
    await followToEnd(app.client, await enqueue(app.client, 'helper', { message: 'Hi', lane }));
  const lanes = (await scraped(app, /^acp_job_wait_seconds_count/)).map((line) => /lane="(\w+)".* (\d+)$/.exec(line));
  assert.deepEqual(lanes.map((found) => found?.slice(1)).toSorted(), [
    ['first', '1'],
    ['other', '2'],
    ['second', '1'],
  ]);
});

overHttp('OBS-23 gauges of quotas are read from the store again after the configured interval', async (open) => {
  const app = await open({
    host,
    agents: [{ name: 'helper' }],
    service: { Observability: { EnableQuotaUsageGauge: true, QuotaUsageRefreshInterval: '1ms' } },
  });
  await saveQuota(app.client, { agentName: 'helper', period: 'Daily', maxRuns: 9 });
  const used = async () => (await scraped(app, /^acp_quota_usage\{.*metric="Runs"/)).map((line) => line.at(-1));
  assert.deepEqual(await used(), ['0']);
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(await used(), ['1']);
});
