import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { newest, receiver, save, sendTest, webhookSetup } from './webhook-world.ts';

overHttp('attempts at deliveries are counted by event and outcome, refused targets by phase', async (open, t) => {
  const answers = [200, 500, 500];
  const server = await receiver(t, (_request, response) => response.writeHead(answers.shift() ?? 200).end());
  const host = { Metrics: { Path: '/metrics' } };
  const app = await open(webhookSetup({ RetryDelays: ['1m'] }, { host }));
  await save(app.client, server.url);
  await sendTest(app.client);
  await newest(app.client, 'it was delivered', ({ status }) => status === 'Delivered');
  await sendTest(app.client);
  await newest(app.client, 'the first attempt has failed', ({ attempt }) => attempt === 1);
  await app.clock.advance(70_000);
  await newest(app.client, 'it has failed', ({ status }) => status === 'Failed');
  const text = await (await fetch(`${app.url}/metrics`)).text();
  for (const [outcome, count] of [
    ['delivered', 1],
    ['retry', 1],
    ['failed', 1],
  ])
    assert.ok(
      text.includes(
        `acp_webhook_deliveries_total{acp_webhook_event="webhook.test",acp_webhook_outcome="${outcome}"} ${count}\n`,
      ),
      String(text.match(/acp_webhook.*/g)),
    );
  await app.close();

  const strict = await open(
    webhookSetup({ AllowPrivateNetworkTargets: false }, { host, folder: app.folder, agents: [] }),
  );
  await assert.rejects(save(strict.client, 'http://127.0.0.1/'));
  await sendTest(strict.client);
  await newest(strict.client, 'it was dropped', ({ status }) => status === 'Dropped');
  const refused = await (await fetch(`${strict.url}/metrics`)).text();
  for (const phase of ['save', 'connect'])
    assert.ok(
      refused.includes(`acp_egress_refusals_total{acp_egress_client="webhook",acp_egress_phase="${phase}"} 1\n`),
      String(refused.match(/acp_egress.*/g)),
    );
});
