import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { runJson } from '../runs/run-calls.ts';
import { deliveriesOf, newest, receiver, save, webhookSetup } from '../webhooks/webhook-world.ts';
import { accept, openTraces, planner, settled } from './traces-world.ts';

const ends = ['run.completed', 'run.failed', 'run.canceled'] as const;

overHttp(
  'QUOTA-27 of a run elsewhere the thresholds of quotas are announced, its end is not, and statistics leave it out',
  async (open, t) => {
    const setup = webhookSetup();
    const prices = { Currency: 'EUR', openai: { 'gpt-x': { Input: 1000, Output: 2000 } } };
    const app = await openTraces(open, { ...setup, service: { ...setup.service, Pricing: prices } });
    const server = await receiver(t);
    await save(app.client, server.url, { events: [...ends, 'quota.threshold'] });
    await saveQuota(app.client, { agentName: '', period: 'Daily', maxCost: 7 });
    await accept(app, planner(app.clock.now() - 2000).all);
    const [run] = await settled(app, 1);
    assert.equal(run?.treeCost?.totalCost, 6);
    await newest(app.client, 'what is announced', ({ status }) => status === 'Delivered');
    await runJson(app.client, 'helper', 'Hi');
    await newest(
      app.client,
      'the end of a run here',
      ({ eventType, status }) => eventType === 'run.completed' && status === 'Delivered',
    );
    const told = await deliveriesOf(app.client);
    assert.deepEqual(told.map(({ eventType }) => eventType).toSorted(), ['quota.threshold', 'run.completed']);
    const { byAgent } = (await app.client.statistics.get({ query: {} })).body;
    assert.deepEqual(
      byAgent.map(({ agentName, totalRuns }) => [agentName, totalRuns]),
      [['helper', 1]],
    );
  },
);
