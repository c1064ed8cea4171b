import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startServer } from '../../providers/http/loopback-server.ts';
import { everyRun } from '../records.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

const site = openSite({
  script: [{ reply: { text: 'One two.', chunkSize: 5, delay: '5ms' } }],
  service: {
    Webhooks: {
      AllowInsecureHttp: true,
      AllowPrivateNetworkTargets: true,
      RetryDelays: ['50ms', '50ms', '50ms', '1s'],
    },
    WebhookSecrets: { crm: secret },
    Scheduling: { MaxConcurrentJobs: 8, PollInterval: '200ms' },
  },
});
after(() => site.close());

const put = async (service: ServiceProcess, path: string, method: string, body: object): Promise<void> => {
  const answer = await call(service.url + path, { method, body });
  assert.ok(answer.status < 300, answer.text);
};

/** Clients that run an agent one time after the other until nobody answers any more. */
const clients = (service: ServiceProcess, runs: () => boolean): Promise<unknown> =>
  Promise.all(
    Array.from({ length: 8 }, async () => {
      while (runs()) {
        const body = { message: 'Hi', stream: false };
        const answer = await call(`${service.url}/api/agents/helper/run`, { body }).catch(() => null);
        if (answer === null) return;
      }
    }),
  );

test('WEBHOOK-15 WEBHOOK-20 kill -9 loses no delivery, sends none of what is not so, and repeats under one webhook-id', async () => {
  let requests = 0;
  const server = await startServer((_request, response) => {
    requests += 1;
    // Now and then one fails, and one is answered after its sender may be gone.
    if (requests % 7 === 0) response.writeHead(503).end();
    else if (requests % 5 === 0) setTimeout(() => response.end(), 30);
    else response.end();
  });
  after(() => server.close());
  let service = await site.serve();
  await put(service, '/api/agents', 'POST', { name: 'helper', model: { provider: 'demo', model: 'm' } });
  const body = {
    url: server.url,
    events: ['run.completed', 'run.failed'],
    secretConfigurationKey: 'Service:WebhookSecrets:crm',
  };
  await put(service, '/api/webhooks/crm', 'PUT', body);
  for (const enough of [15, 40, 80]) {
    const working = clients(service, () => true);
    await until('deliveries have come', () => server.received.length >= enough || null);
    await service.kill();
    await working;
    service = await site.serve();
  }
  await until('all was delivered', async () => {
    const answer = await call(`${service.url}/api/webhooks/crm/deliveries?status=Pending`);
    return answer.json<unknown[]>().length === 0 || null;
  });

  const told = new Map<string, { readonly runId: string; readonly type: string }>();
  for (const { body: text, headers } of server.received) {
    const message = new Webhook(secret).verify(text, headers as Record<string, string>) as {
      type: string;
      data: { runId: string };
    };
    const id = String(headers['webhook-id']);
    const { runId } = message.data;
    const before = told.get(id);
    assert.ok(before === undefined || before.runId === runId, 'one id is one event');
    told.set(id, { runId, type: message.type });
  }
  const runIds = [...told.values()].map(({ runId }) => runId);
  assert.equal(new Set(runIds).size, runIds.length, 'one event has one id');
  const types = new Map([...told.values()].map(({ runId, type }) => [runId, type]));
  const runs = await everyRun(service);
  assert.deepEqual(new Set(runIds), new Set(runs.map(({ id }) => id)), 'every end is told, and no other');
  for (const { id, status } of runs) assert.equal(types.get(id), `run.${status.toLowerCase()}`);
  assert.ok(
    runs.some(({ status }) => status === 'Failed'),
    'the kills hit runs in progress',
  );
  assert.ok(server.received.length > told.size, 'and deliveries');
  await service.stop();
  await site.checkStore();
});
