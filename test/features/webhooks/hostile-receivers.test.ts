import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { newId } from '../../../src/core/ids.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { deliveryStore } from '../../../src/features/webhooks/webhook-deliveries.store.ts';
import { deliveryWrites } from '../../../src/features/webhooks/webhook-events.ts';
import { forEachDoor, type TestApp } from '../../support/app.ts';
import { issuedCertificate, whyNoCertificates } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { simulateInternet } from '../../support/simulated-internet.ts';
import { deliveriesOf, get, newest, receiver, save, sendTest, webhookSetup } from './webhook-world.ts';

const minute = 60_000;
const publicAddress = '8.8.8.8';
const strict = { AllowPrivateNetworkTargets: false, RetryDelays: ['1m'] };

/** What the log of deliveries, the job and the subscription say once the newest delivery has come to this attempt. */
const told = async ({ client }: TestApp, attempt: number) => {
  const { id, ...delivery } = await newest(client, `attempt ${attempt} counts`, (row) => row.attempt === attempt);
  // The row of a delivery that goes on is written with its job, and that of one that has ended before it.
  const job = await eventually('its job is at rest', async () => {
    const { body } = await client.jobs.get({ params: { id } });
    return body.job.status === 'Leased' || body.job.status === 'Running' ? null : body.job;
  });
  const webhook = await eventually('the subscription has heard of it', async () => {
    const found = await get(client);
    return found.consecutiveFailures === attempt || delivery.status === 'Delivered' ? found : null;
  });
  if (delivery.nextAttemptAt !== null) assert.equal(job.scheduledFor, delivery.nextAttemptAt);
  return {
    delivery: [delivery.status, delivery.error, delivery.responseCode, delivery.nextAttemptAt !== null],
    job: [job.status, job.errorCode, job.attempt],
    webhook: [webhook.enabled, webhook.disabledReason, webhook.consecutiveFailures],
  };
};

/** A first attempt that failed in a way that may pass, and the second and last one that did so, too. */
const failsTwice = async (app: TestApp, error: string, responseCode: number | null): Promise<void> => {
  assert.deepEqual(await told(app, 1), {
    delivery: ['Pending', error, responseCode, true],
    job: ['Pending', null, 1],
    webhook: [true, null, 1],
  });
  await app.clock.advance(1.2 * minute);
  assert.deepEqual(await told(app, 2), {
    delivery: ['Failed', error, responseCode, false],
    job: ['Failed', error, 2],
    webhook: [true, null, 2],
  });
};

/** A receiver that is given each socket once a request has come, and speaks for itself. */
const socketServer = async (t: TestContext, talk: (socket: Socket) => void): Promise<string> => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => talk(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
};

/** Says something again and again, until nobody listens any more. */
const drip = (t: TestContext, socket: Socket, text: string): void => {
  const timer = setInterval(() => socket.write(text), 20);
  t.after(() => clearInterval(timer));
  socket.on('close', () => clearInterval(timer));
};

forEachDoor('WEBHOOK-28 a receiver that hangs is a failed attempt without an answer', async (open, t) => {
  const app = await open(webhookSetup({ Timeout: '400ms', RetryDelays: ['1m'] }));
  await save(app.client, await socketServer(t, () => undefined));
  await sendTest(app.client);
  await failsTwice(app, 'timeout', null);
});

for (const [what, head, responseCode] of [
  ['head', 'HTTP/1.1 200 OK\r\nx-slow: ', null],
  ['body', 'HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n', 200],
] as const)
  forEachDoor(`WEBHOOK-28 no byte of an answer whose ${what} never ends gives it more time`, async (open, t) => {
    const app = await open(webhookSetup({ Timeout: '400ms', RetryDelays: ['1m'] }));
    const url = await socketServer(t, (socket) => {
      socket.write(head);
      drip(t, socket, 'x');
    });
    await save(app.client, url);
    await sendTest(app.client);
    await failsTwice(app, 'timeout', responseCode);
  });

forEachDoor('WEBHOOK-28 of an answer no more is waited for than is read', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [], MaxResponseBytes: 1000 }));
  // The rest of what it announces never comes.
  const answer = `HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(1001)}`;
  await save(app.client, await socketServer(t, (socket) => socket.write(answer)));
  await sendTest(app.client);
  const done = await newest(app.client, 'it has ended', ({ status }) => status !== 'Pending');
  assert.deepEqual([done.status, done.error, done.responseCode], ['Delivered', null, 200]);
});

forEachDoor('WEBHOOK-28 an endless body is a delivery, of which little is read', async (open, t) => {
  const app = await open(webhookSetup({ MaxResponseBytes: 1000 }));
  let sent = 0;
  let isCut = false;
  const url = await socketServer(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    const pour = (): void => {
      while (!isCut && socket.write(`3e8\r\n${'x'.repeat(1000)}\r\n`));
      sent = socket.bytesWritten;
    };
    socket.on('drain', pour);
    socket.on('close', () => {
      isCut = true;
    });
    pour();
  });
  await save(app.client, url);
  await sendTest(app.client);
  assert.deepEqual(await told(app, 1), {
    delivery: ['Delivered', null, 200, false],
    job: ['Completed', null, 1],
    webhook: [true, null, 0],
  });
  await eventually('the connection was cut', () => isCut);
  assert.ok(sent < 32_000_000, `${sent} bytes: what lies in the buffers of both sockets`);
});

forEachDoor(
  'WEBHOOK-32 WEBHOOK-33 a receiver that is gone ends the delivery, whatever attempts are left, and what waits for it',
  async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['1m', '1m'] }));
    let status = 500;
    const server = await receiver(t, (_request, response) => response.writeHead(status).end());
    await save(app.client, server.url);
    const ended = (await sendTest(app.client)).deliveryId;
    await told(app, 1);
    await app.clock.advance(0.5 * minute);
    const waiting = (await sendTest(app.client)).deliveryId;
    await eventually('both have failed once', async () => (await get(app.client)).consecutiveFailures === 2);
    status = 410;
    await app.clock.advance(0.7 * minute);
    const stopped = await eventually('it is stopped', async () => {
      const webhook = await get(app.client);
      return webhook.enabled ? null : webhook;
    });
    assert.deepEqual([stopped.disabledReason, stopped.consecutiveFailures], ['Gone', 3]);
    const rows = (await deliveriesOf(app.client)).map((row) => [
      row.id,
      ...[row.status, row.error, row.responseCode, row.attempt, row.nextAttemptAt],
    ]);
    assert.deepEqual(rows, [
      [waiting, 'Dropped', 'subscription-disabled', 500, 1, null],
      [ended, 'Failed', 'http-status', 410, 2, null],
    ]);
    const job = await eventually('its job has ended', async () => {
      const { body } = await app.client.jobs.get({ params: { id: ended ?? '' } });
      return body.job.completedAt === null ? null : body.job;
    });
    assert.deepEqual([job.status, job.errorCode, job.attempt], ['Failed', 'http-status', 2]);
    await app.clock.jump(10 * minute);
    assert.equal(server.received.length, 3, 'nothing more is sent');
  },
);

for (const [what, ahead, waits] of [
  ['a date moves the next attempt to it', 30, [29, 30]],
  ['a date beyond the longest delay moves it by that delay', 600, [59, 60]],
  ['a date that has passed does not move it', -30, [0.9, 1.1]],
] as const)
  forEachDoor(`WEBHOOK-30 429 with ${what}`, async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['1m', '1h'] }));
    const server = await receiver(t, (_request, response) =>
      response
        .writeHead(429, { 'retry-after': new Date(app.clock.now() + ahead * minute).toUTCString() })
        .end('{"error":"slow down"}'),
    );
    await save(app.client, server.url);
    const before = app.clock.now();
    await sendTest(app.client);
    assert.deepEqual(await told(app, 1), {
      delivery: ['Pending', 'http-status', 429, true],
      job: ['Pending', null, 1],
      webhook: [true, null, 1],
    });
    const [row] = await deliveriesOf(app.client);
    const waited = (Date.parse(row?.nextAttemptAt ?? '') - before) / minute;
    assert.ok(waited >= waits[0] && waited <= waits[1] + (app.clock.now() - before) / minute, String(waited));
    await app.clock.jump((waits[0] - 0.2) * minute);
    assert.equal(server.received.length, 1, 'never earlier');
  });

forEachDoor(
  'WEBHOOK-25 WEBHOOK-26 a name that means another address when it is asked again is connected to as it was checked',
  async (open, t) => {
    const server = await receiver(t, (_request, response) => response.writeHead(500).end());
    // As one whose owner answers the check with one address, and the connection with another.
    const internet = simulateInternet(t, {
      'rebind.example': (lookup) => [lookup === 1 ? publicAddress : '127.0.0.1'],
    });
    const app = await open(webhookSetup(strict));
    await save(app.client, `http://rebind.example:${server.port}/`);
    assert.equal(internet.lookups('rebind.example'), 0, 'a save asks nobody');
    await sendTest(app.client);
    assert.deepEqual(await told(app, 1), {
      delivery: ['Pending', 'http-status', 500, true],
      job: ['Pending', null, 1],
      webhook: [true, null, 1],
    });
    assert.equal(internet.lookups('rebind.example'), 1);
    assert.deepEqual(internet.connected, [`${publicAddress}:${server.port}`]);
    // The next attempt looks again, and does not use the connection of before.
    await app.clock.advance(1.2 * minute);
    const dropped = await newest(app.client, 'it was dropped', ({ status }) => status === 'Dropped');
    assert.deepEqual([dropped.error, dropped.responseCode, dropped.nextAttemptAt], ['target-not-allowed', null, null]);
    assert.deepEqual(await told(app, 2), {
      delivery: ['Dropped', 'target-not-allowed', null, false],
      job: ['Failed', 'target-not-allowed', 2],
      webhook: [true, null, 2],
    });
    assert.deepEqual(internet.connected, [`${publicAddress}:${server.port}`], 'nobody was connected to');
    assert.equal(server.received.length, 1);
    assert.doesNotMatch(JSON.stringify(await deliveriesOf(app.client)), /127\.0\.0\.1/);
    assert.ok(app.log.some(({ message, fields }) => message.includes('was dropped') && fields['webhook'] === 'crm'));
  },
);

forEachDoor('WEBHOOK-25 one private address among those of a name is enough to drop a delivery', async (open, t) => {
  const server = await receiver(t);
  const internet = simulateInternet(t, {
    'both.example': () => [publicAddress, '10.0.0.1'],
    'mapped.example': () => ['::ffff:127.0.0.1'],
  });
  const app = await open(webhookSetup(strict));
  for (const [index, name] of ['both.example', 'mapped.example'].entries()) {
    await save(app.client, `http://${name}:${server.port}/`);
    await sendTest(app.client);
    const what = `${index + 1} was dropped`;
    const dropped = await newest(app.client, what, ({ status }) => status === 'Dropped');
    assert.equal(dropped.error, 'target-not-allowed');
  }
  assert.deepEqual([internet.connected, server.connections()], [[], 0]);
});

forEachDoor(
  'WEBHOOK-27 a redirect to a private address is a failed attempt, and nobody goes there',
  async (open, t) => {
    const inside = await receiver(t);
    const server = await receiver(t, (_request, response) => response.writeHead(301, { location: inside.url }).end());
    const internet = simulateInternet(t, { 'hooks.example': () => [publicAddress] });
    const app = await open(webhookSetup(strict));
    await save(app.client, `http://hooks.example:${server.port}/`);
    await sendTest(app.client);
    await failsTwice(app, 'redirect-refused', 301);
    assert.equal(inside.connections(), 0);
    assert.deepEqual(new Set(internet.connected), new Set([`${publicAddress}:${server.port}`]));
    assert.equal(server.received.length, 2);
  },
);

/** An HTTPS server of this machine with a certificate that is trusted until the test ends, for one name. */
const tlsReceiver = async (t: TestContext, name: string) => {
  const { authority, key, cert } = issuedCertificate(t, name);
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, authority]);
  t.after(() => setDefaultCACertificates(before));
  let requests = 0;
  const server = createTlsServer({ key, cert }, (_request, response) => {
    requests += 1;
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { port: (server.address() as AddressInfo).port, requests: () => requests };
};

forEachDoor(
  'WEBHOOK-27 a certificate for another name is a failed attempt, and nothing is sent to who has it',
  async (open, t) => {
    const why = whyNoCertificates();
    if (why !== null) return t.skip(why);
    const server = await tlsReceiver(t, 'right.example');
    const internet = simulateInternet(t, {
      'right.example': () => [publicAddress],
      'wrong.example': () => [publicAddress],
    });
    const app = await open(webhookSetup(strict));
    await save(app.client, `https://wrong.example:${server.port}/`);
    await sendTest(app.client);
    await failsTwice(app, 'tls-failed', null);
    assert.equal(server.requests(), 0, 'the body went to nobody');
    assert.doesNotMatch(JSON.stringify(await deliveriesOf(app.client)), /certificate|altnames|8\.8\.8\.8/i);
    await save(app.client, `https://right.example:${server.port}/`);
    await sendTest(app.client);
    await newest(app.client, 'its own name is good enough', ({ status }) => status === 'Delivered');
    assert.equal(server.requests(), 1);
    assert.equal(internet.connected.length, 3);
  },
);

forEachDoor(
  'WEBHOOK-33 what a process still published of a subscription that another one has disabled is not sent',
  async (open, t) => {
    const server = await receiver(t);
    const app = await open(webhookSetup());
    const { id: webhookId } = await save(app.client, server.url);
    await save(app.client, server.url, { enabled: false });
    // As one writes it that has not heard of the save.
    const storage = app.store.open();
    const [deliveries, jobs] = [storage.stores(deliveryStore), storage.stores(jobStore)];
    const line = { lane: 'default', maxAttempts: 6 };
    const write = deliveryWrites({ deliveries, jobs, line, now: app.clock.now, newId });
    const late = write({ id: webhookId, tenant_id: 'default', name: 'crm' }, 'run.completed', app.clock.now(), {});
    await storage.transaction((stores) => stores.write(late.statements));
    await app.clock.advance(10_000);
    const dropped = await newest(app.client, 'it was dropped', ({ status }) => status === 'Dropped');
    assert.deepEqual(
      [dropped.id, dropped.error, dropped.responseCode, dropped.attempt, dropped.nextAttemptAt],
      [late.id, 'subscription-disabled', null, 0, null],
    );
    const job = await eventually('its job has ended', async () => {
      const { body } = await app.client.jobs.get({ params: { id: late.id } });
      return body.job.completedAt === null ? null : body.job;
    });
    assert.deepEqual([job.status, job.errorCode], ['Failed', 'subscription-disabled']);
    const { enabled, consecutiveFailures } = await get(app.client);
    assert.deepEqual([server.received.length, enabled, consecutiveFailures], [0, false, 0]);
  },
);
