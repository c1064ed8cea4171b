import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../support/eventually.ts';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { rule } from './rule.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const settings = {
  'Service:Webhooks:AllowInsecureHttp': 'true',
  'Service:Webhooks:AllowPrivateNetworkTargets': 'true',
  'Service:Webhooks:RetryDelays:0': '100ms',
  'Service:Scheduling:PollInterval': '200ms',
  'Service:Webhooks:DisableAfterConsecutiveFailures': '4',
  'Service:WebhookSecrets:conformance': secret,
};
const key = 'Service:WebhookSecrets:conformance';
const strict = { secretConfigurationKey: key, events: ['run.failed'], url: 'https://hooks.example.com/' };

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on this machine, while the work lasts; it answers with what the work sets. */
const withReceiver = async (
  work: (receiver: { readonly url: string; readonly received: readonly Received[]; status: number }) => Promise<void>,
): Promise<void> => {
  const received: Received[] = [];
  const state = { url: '', received, status: 204 };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(state.status).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  try {
    await work(state);
  } finally {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
};

const save = async (api: Api, name: string, body: Record<string, unknown>): Promise<Body> => {
  const answer = await api.put(`/api/webhooks/${name}`, { ...strict, ...body });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const ofAgent = (received: readonly Received[], agent: string): readonly Body[] =>
  received
    .map(({ headers, body }) => {
      const message = new Webhook(secret).verify(body, headers as Record<string, string>) as Body;
      return { ...message, id: headers['webhook-id'] };
    })
    .filter(({ data }) => data.agentName === agent);

rule('WEBHOOK-2 WEBHOOK-3 WEBHOOK-11', 'a subscription is created, replaced and removed', async (api) => {
  const name = unique('hook');
  const first = await save(api, name, { headers: { 'x-team': 'sales' } });
  assert.deepEqual([first.headers, first.enabled, first.resolved], [{ 'x-team': '***' }, true, false]);
  const second = await save(api, name, { events: ['job.failed'], enabled: false });
  assert.deepEqual(
    [second.id, second.createdAt, second.events, second.headers, second.enabled, second.disabledReason],
    [first.id, first.createdAt, ['job.failed'], {}, false, null],
  );
  assert.deepEqual((await api.get(`/api/webhooks/${name}`)).body, second);
  assert.equal((await api.del(`/api/webhooks/${name}`)).status, 204);
  assertProblem(await api.del(`/api/webhooks/${name}`), 404, 'not-found');
  for (const [method, path] of [
    ['GET', ''],
    ['POST', '/test'],
    ['GET', '/deliveries'],
  ] as const)
    assertProblem(await api.call(method, `/api/webhooks/${name}${path}`), 404, 'not-found');
});

rule('WEBHOOK-4 WEBHOOK-6 WEBHOOK-9 WEBHOOK-10', 'what no subscription can be is 400', async (api) => {
  const name = unique('hook');
  for (const bad of [
    { url: 'hooks' },
    { url: 'https://user@hooks.example.com/' },
    { url: 'https://hooks.example.com/#x' },
    { events: [] },
    { events: ['run.exploded'] },
    { events: ['run.failed', 'run.failed'] },
    { headers: { 'x y': '1' } },
    { headers: { cookie: '1' } },
    { headers: { 'x-a': '***' } },
  ])
    assertProblem(await api.put(`/api/webhooks/${name}`, { ...strict, ...bad }), 400, 'validation-failed');
  const foreign = { ...strict, secretConfigurationKey: 'Service:ProviderKeys:x' };
  assertProblem(await api.put(`/api/webhooks/${name}`, foreign), 400, 'configuration-key-not-allowed');
  assertProblem(await api.put('/api/webhooks/a%20b', strict), 400, 'validation-failed');
});

rule(
  'WEBHOOK-14 WEBHOOK-19 WEBHOOK-21 WEBHOOK-22 WEBHOOK-23 WEBHOOK-29',
  'the end of a run is sent, signed, to each receiver that listens',
  async (api) => {
    const agent = await api.agent();
    const name = unique('hook');
    await withReceiver(async (receiver) => {
      await save(api, name, { url: receiver.url, events: ['run.completed'] });
      const run = await api.run(agent, { message: 'say a secret', stream: false });
      const [message] = await eventually('it has arrived', () => {
        const found = ofAgent(receiver.received, agent);
        return found.length > 0 ? found : null;
      });
      assert.deepEqual(
        [message.type, message.data.runId, message.data.status],
        ['run.completed', run.body.runId, 'Completed'],
      );
      assert.ok(!JSON.stringify(message).includes('secret'));
      const delivery = await eventually('it was delivered', async () => {
        const list: Body = (await api.get(`/api/webhooks/${name}/deliveries?status=delivered`)).body;
        return list.find(({ id }: Body) => id === message.id);
      });
      assert.deepEqual([delivery.attempt, delivery.responseCode, delivery.error], [1, 204, null]);
      assertProblem(await api.get(`/api/webhooks/${name}/deliveries?status=lost`), 400, 'validation-failed');
      await api.del(`/api/webhooks/${name}`);
    });
  },
  { settings },
);

rule(
  'WEBHOOK-12 WEBHOOK-30 WEBHOOK-31 WEBHOOK-33',
  'a receiver that stays broken is tried again, and then stopped',
  async (api) => {
    const name = unique('hook');
    await withReceiver(async (receiver) => {
      receiver.status = 500;
      await save(api, name, { url: receiver.url });
      for (let count = 1; count <= 2; count += 1) {
        const { body } = await api.post(`/api/webhooks/${name}/test`);
        assert.equal(body.queued, true, body.message);
        await eventually('it has failed', async () => {
          const [newest]: Body = (await api.get(`/api/webhooks/${name}/deliveries`)).body;
          return newest.id === body.deliveryId && newest.attempt === 2;
        });
      }
      const stopped = await eventually('it is stopped', async () => {
        const { body } = await api.get(`/api/webhooks/${name}`);
        return body.enabled ? null : body;
      });
      assert.deepEqual([stopped.disabledReason, stopped.consecutiveFailures], ['ConsecutiveFailures', 4]);
      assert.equal((await api.post(`/api/webhooks/${name}/test`)).body.queued, false);
      const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
      assert.deepEqual([ids.length, new Set(ids).size], [4, 2], 'attempts of one delivery have one id');
      await api.del(`/api/webhooks/${name}`);
    });
  },
  { settings },
);
