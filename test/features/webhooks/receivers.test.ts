import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { forEachDoor } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { eventually } from '../../support/eventually.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { crmSecret, deliveriesOf, get, newest, receiver, save, sendTest, webhookSetup } from './webhook-world.ts';

/** A receiver that speaks no HTTP of its own: it is given each socket. */
const socketServer = async (t: TestContext, talk: (write: (text: string) => void) => void) => {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => talk((text) => void (socket.destroyed || socket.write(text))));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const hangUp = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(async () => {
    hangUp();
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, hangUp };
};

const quick = { Timeout: '400ms', RetryDelays: [] };

forEachDoor('WEBHOOK-28 a receiver that hangs has so long, and no longer', async (open, t) => {
  const app = await open(webhookSetup(quick));
  await save(app.client, (await socketServer(t, () => undefined)).url);
  await sendTest(app.client);
  const failed = await newest(app.client, 'it has failed', ({ status }) => status === 'Failed');
  assert.deepEqual([failed.error, failed.responseCode], ['timeout', null]);
});

forEachDoor('WEBHOOK-28 an answer of one byte now and then ends with the time, too', async (open, t) => {
  const app = await open(webhookSetup(quick));
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n';
  // What would come next comes after the end of the test.
  for (const [text, responseCode] of [
    ['H', null],
    ['HTTP/1.1 200 OK\r\n', null],
    [head, 200],
    [`${head}xxxxx`, 200],
  ] as const) {
    await save(app.client, (await socketServer(t, (write) => write(text))).url);
    await sendTest(app.client);
    const failed = await newest(app.client, 'it has failed', ({ status }) => status === 'Failed');
    assert.deepEqual([failed.error, failed.responseCode], ['timeout', responseCode], text);
  }
});

forEachDoor('WEBHOOK-28 of an endless answer the status counts, and the rest is not read', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [], MaxResponseBytes: 1000 }));
  let isClosed = false;
  const server = await receiver(t, (_request, response) => {
    response.writeHead(200);
    const pour = (): void => {
      while (!isClosed && response.write('x'.repeat(500)));
    };
    response.on('drain', pour);
    response.on('close', () => {
      isClosed = true;
    });
    pour();
  });
  await save(app.client, server.url);
  await sendTest(app.client);
  const done = await newest(app.client, 'it was delivered', ({ status }) => status === 'Delivered');
  assert.equal(done.responseCode, 200);
  await eventually('the connection was cut', () => isClosed);
});

forEachDoor('WEBHOOK-27 a redirect is a failed attempt, wherever it leads', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [] }));
  const inside = await receiver(t);
  let code = 0;
  const server = await receiver(t, (_request, response) => response.writeHead(code, { location: inside.url }).end());
  await save(app.client, server.url);
  for (code of [300, 301, 307, 399]) {
    const { deliveryId } = await sendTest(app.client);
    const ended = await newest(app.client, `${code}`, ({ id, status }) => id === deliveryId && status !== 'Pending');
    assert.deepEqual([ended.status, ended.error, ended.responseCode], ['Failed', 'redirect-refused', code]);
  }
  code = 299;
  await sendTest(app.client);
  await newest(app.client, 'any 2xx is a success', ({ status }) => status === 'Delivered');
  assert.equal(inside.received.length, 0);
});

forEachDoor(
  'WEBHOOK-32 WEBHOOK-13 attempts that learn at once that a receiver is gone stop it once',
  async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: [] }, { service: { Scheduling: { MaxConcurrentJobs: 8 } } }));
    const here: (() => void)[] = [];
    const server = await receiver(t, (_request, response) => {
      here.push(() => response.writeHead(410).end());
      if (here.length === 3) for (const answer of here) answer();
    });
    await save(app.client, server.url);
    await Promise.all([1, 2, 3].map(() => sendTest(app.client)));
    await eventually('every attempt has come to its end', async () => {
      const { body } = await app.client.jobs.list({ query: { handlerKey: 'acp.webhook-delivery', status: 'Failed' } });
      return body.length === 3;
    });
    assert.deepEqual(
      (await trail(app)).filter(({ action }) => action === 'webhook.disable').map(({ after }) => after),
      [{ enabled: false, disabledReason: 'Gone' }],
    );
  },
);

forEachDoor('WEBHOOK-29 a receiver that is not there is a failed attempt', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [] }));
  const server = await receiver(t);
  await server.close();
  await save(app.client, server.url);
  await sendTest(app.client);
  assert.equal(
    (await newest(app.client, 'it has failed', ({ status }) => status === 'Failed')).error,
    'connection-failed',
  );
  await save(app.client, 'http://nowhere.invalid/');
  await sendTest(app.client);
  const unresolved = await newest(app.client, 'it has failed', ({ error }) => error === 'dns-failed');
  assert.equal(unresolved.status, 'Failed');
});

forEachDoor(
  'WEBHOOK-25 WEBHOOK-26 WEBHOOK-31 a target that became private is dropped, and shows no address',
  async (open, t) => {
    const server = await receiver(t);
    const app = await open(webhookSetup());
    await save(app.client, server.url);
    await app.close();
    const strict = { AllowPrivateNetworkTargets: false, DisableAfterConsecutiveFailures: 2 };
    const next = await open(webhookSetup(strict, { folder: app.folder, agents: [] }));
    await sendTest(next.client);
    const dropped = await newest(next.client, 'it was dropped', ({ status }) => status === 'Dropped');
    assert.deepEqual([dropped.error, dropped.responseCode, dropped.nextAttemptAt], ['target-not-allowed', null, null]);
    assert.equal((await get(next.client)).consecutiveFailures, 1);
    await sendTest(next.client);
    await eventually('it is stopped', async () => (await get(next.client)).disabledReason === 'ConsecutiveFailures');
    assert.equal(server.received.length, 0);
    assert.ok(next.log.some(({ message, fields }) => message.includes('was dropped') && fields['webhook'] === 'crm'));
  },
);

forEachDoor('WEBHOOK-5 http that is not allowed any more is not spoken', async (open, t) => {
  const server = await receiver(t);
  const app = await open(webhookSetup());
  await save(app.client, server.url);
  await app.close();
  const next = await open(webhookSetup({ AllowInsecureHttp: false }, { folder: app.folder, agents: [] }));
  await sendTest(next.client);
  await newest(next.client, 'it was dropped', ({ status }) => status === 'Dropped');
  assert.equal(server.received.length, 0);
});

forEachDoor('a receiver that hangs does not take all places of the worker', async (open, t) => {
  const service = { Scheduling: { MaxConcurrentJobs: 4 } };
  const app = await open(webhookSetup({ Timeout: '30s' }, { service }));
  const arrived: unknown[] = [];
  const hanging = await socketServer(t, () => arrived.push(null));
  await save(app.client, hanging.url);
  for (let count = 0; count < 2; count += 1) await sendTest(app.client);
  await eventually('two are under way', () => arrived.length === 2);
  await app.clock.advance(1500);
  for (let count = 0; count < 20; count += 1) await sendTest(app.client);
  const server = await receiver(t);
  await save(app.client, server.url, { name: 'other' });
  await app.client.webhooks.test({ params: { name: 'other' } });
  await eventually('the other receiver has its delivery', () => server.received.length === 1);
  assert.equal(arrived.length, 2, 'the slow one has no further place');
  hanging.hangUp();
});

forEachDoor('WEBHOOK-20 a receiver that answers after its time gets the delivery again', async (open, t) => {
  const app = await open(webhookSetup({ Timeout: '300ms', RetryDelays: ['1m'] }));
  let isFirst = true;
  const ids: unknown[] = [];
  const server = await receiver(t, ({ headers }, response) => {
    ids.push(headers['webhook-id']);
    if (!isFirst) response.end();
    isFirst = false;
  });
  await save(app.client, server.url);
  await runJson(app.client, 'helper', 'Hi');
  await newest(app.client, 'the first attempt has failed', ({ error }) => error === 'timeout');
  await app.clock.advance(70_000);
  await newest(app.client, 'it was delivered', ({ status }) => status === 'Delivered');
  assert.deepEqual(new Set(ids).size, 1);
});

forEachDoor('WEBHOOK-33 a delivery that is dropped stays so, whatever its receiver says then', async (open, t) => {
  const app = await open(webhookSetup());
  const begun: (() => void)[] = [];
  const server = await receiver(t, (_request, response) => void begun.push(() => response.writeHead(204).end()));
  await save(app.client, server.url);
  await sendTest(app.client);
  await eventually('the attempt is under way', () => begun.length === 1);
  const job = async () => (await app.client.jobs.list({ query: { handlerKey: 'acp.webhook-delivery' } })).body[0];
  assert.equal((await job())?.status, 'Running');
  await save(app.client, server.url, { enabled: false });
  begun[0]?.();
  await eventually('its job has ended', async () => (await job())?.status === 'Completed');
  const [dropped] = await deliveriesOf(app.client);
  assert.deepEqual([dropped?.status, dropped?.attempt], ['Dropped', 0]);
});

for (const [Egress, Webhooks] of [
  [true, false],
  [false, true],
] as const)
  forEachDoor(
    `EGR-6 webhooks reach this machine with Egress ${Egress} and Webhooks ${Webhooks}, other targets with Egress`,
    async (open, t) => {
      const service = { Egress: { AllowPrivateNetworkTargets: Egress } };
      const app = await open(
        webhookSetup(
          { AllowPrivateNetworkTargets: Webhooks },
          { service: { ...service, WebhookSecrets: { crm: crmSecret } } },
        ),
      );
      const { client } = app;
      // Scheme: as their own rule says, and no address changes that.
      const insecure = await open(
        webhookSetup(
          { AllowPrivateNetworkTargets: Webhooks, AllowInsecureHttp: false },
          { service: { ...service, WebhookSecrets: { crm: crmSecret } } },
        ),
      );
      assert.equal((await refusal(save(insecure.client, 'http://127.0.0.1:9/'))).code, 'validation-failed');
      const target = await receiver(t);
      await save(client, target.url);
      await runJson(client, 'helper', 'Hi');
      await newest(client, 'it has arrived', ({ status }) => status === 'Delivered');
      const server = client.mcpServers.save({
        params: { name: 'files' },
        body: { endpoint: 'https://127.0.0.1:9/mcp' },
      });
      if (Egress) assert.equal((await server).body.name, 'files');
      else assert.equal((await refusal(server)).code, 'target-not-allowed');
    },
  );

forEachDoor('EGR-6 webhooks reach no private address while neither setting allows it', async (open) => {
  const app = await open(webhookSetup({ AllowPrivateNetworkTargets: false }));
  assert.equal((await refusal(save(app.client, 'http://127.0.0.1:9/'))).code, 'target-not-allowed');
});
