import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { forEachDurableService, overHttp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue, refusal, runJson } from '../runs/run-calls.ts';
import {
  crmSecret,
  deliveriesOf,
  get,
  messages,
  newest,
  receiver,
  save,
  sendTest,
  verified,
  webhookSetup,
} from './webhook-world.ts';

const params = { name: 'crm' };
const minute = 60_000;

forEachDurableService('WEBHOOK-21 WEBHOOK-22 WEBHOOK-29 a delivery is a row and one signed POST', async (open, t) => {
  const app = await open(webhookSetup());
  const server = await receiver(t);
  await save(app.client, `${server.url}/hook?a=1`);
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const [message] = await messages(server, 1);
  const [request] = server.received;
  assert.deepEqual([request?.method, request?.url], ['POST', '/hook?a=1']);
  const done = await newest(app.client, 'it was delivered', ({ status }) => status === 'Delivered');
  assert.deepEqual(
    [done.id, done.payload, done.attempt, done.responseCode, done.error, done.nextAttemptAt, done.eventType],
    [message?.id, request?.body, 1, 204, null, null, 'run.completed'],
  );
  assert.ok(done.deliveredAt !== null && done.deliveredAt >= done.createdAt);
  assert.equal(message?.data['runId'], runId);
  const { body: jobs } = await app.client.jobs.list({ query: { handlerKey: 'acp.webhook-delivery' } });
  assert.deepEqual(
    jobs.map((job) => [job.id, job.targetName, job.maxAttempts, job.payload]),
    [[done.id, 'crm', 6, null]],
  );
});

forEachDurableService('WEBHOOK-23 a key with several secrets signs with each, the newest first', async (open, t) => {
  const secrets = ['a plain secret of ümlauts', crmSecret, 'whsec_b2xkZXN0'];
  const app = await open(webhookSetup({}, { service: { WebhookSecrets: { crm: secrets } } }));
  const server = await receiver(t);
  await save(app.client, server.url);
  await sendTest(app.client);
  const [request] = await eventually('it has arrived', () => (server.received.length > 0 ? server.received : null));
  assert.ok(request !== undefined);
  for (const secret of secrets) assert.equal(verified(request, secret).type, 'webhook.test');
  assert.equal(String(request.headers['webhook-signature']).split(' ').length, 3);
  assert.throws(() => new Webhook('whsec_b3RoZXI=').verify(request.body, request.headers as Record<string, string>));
});

forEachDurableService('WEBHOOK-24 nothing is sent unsigned', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [] }));
  const server = await receiver(t);
  await save(app.client, server.url, { secretConfigurationKey: 'Service:WebhookSecrets:empty' });
  await sendTest(app.client);
  const failed = await newest(app.client, 'it has failed', ({ status }) => status === 'Failed');
  assert.deepEqual([failed.error, failed.attempt, failed.responseCode], ['secret-unresolved', 1, null]);
  assert.equal(server.received.length, 0);
  assert.equal((await get(app.client)).consecutiveFailures, 1);
});

forEachDurableService('WEBHOOK-7 WEBHOOK-24 a key that is not allowed any more signs nothing', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [] }));
  const server = await receiver(t);
  await save(app.client, server.url);
  await app.close();
  const moved = webhookSetup(
    { RetryDelays: [], AllowedConfigurationPrefix: 'Service:WebhookSecrets:new:' },
    { folder: app.folder, agents: [] },
  );
  const next = await open(moved);
  assert.equal((await get(next.client)).resolved, false);
  await sendTest(next.client);
  assert.equal(
    (await newest(next.client, 'it has failed', ({ status }) => status === 'Failed')).error,
    'secret-unresolved',
  );
  assert.equal(server.received.length, 0);
});

forEachDurableService(
  'WEBHOOK-30 each failed attempt waits for its delay, and the last ends the delivery',
  async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['1m', '2m'] }));
    const server = await receiver(t, (_request, response) => response.writeHead(500).end());
    await save(app.client, server.url);
    await sendTest(app.client);
    const first = await newest(app.client, 'the first attempt has failed', ({ attempt }) => attempt === 1);
    assert.deepEqual([first.status, first.error, first.responseCode], ['Pending', 'http-status', 500]);
    const waitMs = Date.parse(first.nextAttemptAt ?? '') - app.clock.now();
    assert.ok(waitMs > 30_000 && waitMs <= 1.1 * minute, String(waitMs));
    await app.clock.advance(0.5 * minute);
    assert.equal(server.received.length, 1, 'never earlier');
    await app.clock.advance(minute);
    await newest(app.client, 'the second attempt has failed', ({ attempt }) => attempt === 2);
    await app.clock.advance(2.5 * minute);
    const last = await newest(app.client, 'the last attempt has failed', ({ attempt }) => attempt === 3);
    assert.deepEqual(
      [last.status, last.error, last.responseCode, last.nextAttemptAt],
      ['Failed', 'http-status', 500, null],
    );
    const sent = server.received.map((request) => ({
      ...verified(request),
      at: Number(request.headers['webhook-timestamp']),
    }));
    assert.equal(new Set(sent.map(({ id }) => id)).size, 1, 'all attempts have one webhook-id');
    assert.ok(
      sent.every(({ at }, index) => index === 0 || at > (sent[index - 1]?.at ?? 0)),
      'each has its own timestamp',
    );
    assert.equal((await get(app.client)).consecutiveFailures, 3);
    const [job] = (await app.client.jobs.list({ query: { handlerKey: 'acp.webhook-delivery' } })).body;
    assert.deepEqual([job?.status, job?.errorCode], ['Failed', 'http-status']);
  },
);

forEachDurableService('WEBHOOK-29 a success forgives the failures before it', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: ['1m'] }));
  let left = 1;
  const server = await receiver(t, (_request, response) => {
    left -= 1;
    response.writeHead(left >= 0 ? 503 : 200).end();
  });
  await save(app.client, server.url);
  await sendTest(app.client);
  await newest(app.client, 'the first attempt has failed', ({ attempt }) => attempt === 1);
  assert.equal((await get(app.client)).consecutiveFailures, 1);
  await app.clock.advance(2 * minute);
  const done = await newest(app.client, 'it was delivered', ({ status }) => status === 'Delivered');
  assert.deepEqual([done.attempt, done.error, done.responseCode], [2, null, 200]);
  assert.equal((await get(app.client)).consecutiveFailures, 0);
});

for (const [status, value] of [
  [429, (now: number) => new Date(now + 30 * minute).toUTCString()],
  [503, () => '1800'],
] as const)
  forEachDurableService(`WEBHOOK-30 Retry-After on ${status} moves the next attempt later`, async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['1m', '1h'] }));
    const server = await receiver(t, (_request, response) =>
      response.writeHead(status, { 'retry-after': value(app.clock.now()) }).end(),
    );
    await save(app.client, server.url);
    await sendTest(app.client);
    const { nextAttemptAt } = await newest(app.client, 'the attempt has failed', ({ attempt }) => attempt === 1);
    const waitMs = Date.parse(nextAttemptAt ?? '') - app.clock.now();
    assert.ok(waitMs > 28 * minute && waitMs <= 30 * minute, String(waitMs));
  });

overHttp('WEBHOOK-30 Retry-After on another status moves nothing', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: ['1m', '1h'] }));
  const server = await receiver(t, (_request, response) => response.writeHead(500, { 'retry-after': '1800' }).end());
  await save(app.client, server.url);
  await sendTest(app.client);
  const { nextAttemptAt } = await newest(app.client, 'the attempt has failed', ({ attempt }) => attempt === 1);
  const waitMs = Date.parse(nextAttemptAt ?? '') - app.clock.now();
  assert.ok(waitMs <= 1.1 * minute, String(waitMs));
});

forEachDurableService(
  'WEBHOOK-31 WEBHOOK-33 a receiver that stays broken is stopped, with what waits for it',
  async (open, t) => {
    const app = await open(webhookSetup({ DisableAfterConsecutiveFailures: 3, RetryDelays: ['1h'] }));
    const server = await receiver(t, (_request, response) => response.writeHead(500).end());
    await save(app.client, server.url);
    for (const count of [1, 2, 3]) {
      await sendTest(app.client);
      await eventually('the attempt was made', () => server.received.length === count);
      await eventually('the failure counts', async () => (await get(app.client)).consecutiveFailures === count);
    }
    const stopped = await eventually('it is stopped', async () => {
      const webhook = await get(app.client);
      return webhook.enabled ? null : webhook;
    });
    assert.deepEqual([stopped.disabledReason, stopped.consecutiveFailures], ['ConsecutiveFailures', 3]);
    for (const { status, error, nextAttemptAt } of await deliveriesOf(app.client))
      assert.deepEqual([status, error, nextAttemptAt], ['Dropped', 'subscription-disabled', null]);
    const entry = (await trail(app)).find(({ action }) => action === 'webhook.disable');
    assert.deepEqual(
      [entry?.actor, entry?.entity, entry?.after],
      ['system:acp.webhook-delivery', 'webhook:crm', { enabled: false, disabledReason: 'ConsecutiveFailures' }],
    );
    await runJson(app.client, 'helper', 'Hi');
    assert.equal((await deliveriesOf(app.client)).length, 3, 'no event makes a delivery any more');
    const off = await save(app.client, server.url, { enabled: false });
    assert.deepEqual([off.disabledReason, off.consecutiveFailures], [null, 3], 'nothing is forgiven by that');
    const again = await save(app.client, server.url);
    assert.deepEqual([again.enabled, again.disabledReason, again.consecutiveFailures], [true, null, 0]);
    await app.clock.jump(2 * 60 * minute);
    assert.equal(server.received.length, 3, 'what was dropped is not sent');
  },
);

forEachDurableService('WEBHOOK-32 a receiver that is gone is stopped at once', async (open, t) => {
  const app = await open(webhookSetup());
  const server = await receiver(t, (_request, response) => response.writeHead(410).end());
  await save(app.client, server.url);
  await sendTest(app.client);
  const failed = await newest(app.client, 'it has failed', ({ status }) => status === 'Failed');
  assert.deepEqual([failed.responseCode, failed.error, failed.attempt], [410, 'http-status', 1]);
  const stopped = await eventually('it is stopped', async () => {
    const webhook = await get(app.client);
    return webhook.enabled ? null : webhook;
  });
  assert.deepEqual([stopped.disabledReason, stopped.consecutiveFailures], ['Gone', 1]);
  const entry = (await trail(app)).find(({ action }) => action === 'webhook.disable');
  assert.deepEqual(entry?.after, { enabled: false, disabledReason: 'Gone' });
});

forEachDurableService('WEBHOOK-33 saving it as disabled drops what waits', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: ['1h'] }));
  const server = await receiver(t, (_request, response) => response.writeHead(500).end());
  await save(app.client, server.url);
  await sendTest(app.client);
  await newest(app.client, 'the first attempt has failed', ({ attempt }) => attempt === 1);
  const off = await save(app.client, server.url, { enabled: false });
  assert.deepEqual([off.enabled, off.disabledReason], [false, null]);
  const [dropped] = await deliveriesOf(app.client);
  assert.deepEqual([dropped?.status, dropped?.error], ['Dropped', 'subscription-disabled']);
  await save(app.client, server.url);
  await app.clock.jump(2 * 60 * minute);
  assert.equal(server.received.length, 1);
});

forEachDurableService('WEBHOOK-34 pending deliveries wait while webhooks are switched off', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: ['1m'] }));
  let status = 500;
  const server = await receiver(t, (_request, response) => response.writeHead(status).end());
  await save(app.client, server.url);
  const { deliveryId } = await sendTest(app.client);
  await newest(app.client, 'the first attempt has failed', ({ attempt }) => attempt === 1);
  await app.close();
  status = 200;
  const clock = { folder: app.folder, agents: [], clock: app.clock };
  const off = await open(webhookSetup({ Enabled: false }, clock));
  await off.clock.jump(10 * minute);
  const id = deliveryId ?? '';
  await eventually('a worker had it, and put it back', async () => {
    const { status: state, scheduledFor } = (await off.client.jobs.get({ params: { id } })).body.job;
    return state !== 'Pending' || Date.parse(scheduledFor) > off.clock.now();
  });
  assert.deepEqual(
    (await deliveriesOf(off.client)).map((row) => [row.status, row.attempt]),
    [['Pending', 1]],
  );
  await off.close();
  const on = await open(webhookSetup({}, clock));
  await on.clock.jump(2 * minute);
  await newest(on.client, 'it was delivered', (row) => row.status === 'Delivered' && row.attempt === 2);
  assert.equal(server.received.length, 2);
});

forEachDurableService('WEBHOOK-35 deliveries are listed newest first, by status and in pages', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [] }));
  let count = 0;
  const server = await receiver(t, (_request, response) => {
    count += 1;
    response.writeHead(count === 2 ? 500 : 200).end();
  });
  await save(app.client, server.url);
  const ids: string[] = [];
  for (const index of [1, 2, 3]) {
    ids.unshift((await sendTest(app.client)).deliveryId ?? '');
    await newest(app.client, `delivery ${index} has ended`, ({ status }) => status !== 'Pending');
    await app.clock.advance(10);
  }
  const listed = async (query: Parameters<typeof deliveriesOf>[1]) =>
    (await deliveriesOf(app.client, query)).map(({ id }) => id);
  assert.deepEqual(await listed({}), ids);
  assert.deepEqual(await listed({ take: 1, skip: 1 }), ids.slice(1, 2));
  assert.deepEqual(await listed({ take: 0 }), ids.slice(0, 1));
  assert.deepEqual(await listed({ take: 100_000, skip: -1 }), ids);
  assert.deepEqual(await listed({ status: 'Failed' }), ids.slice(1, 2));
  const refused = await refusal(deliveriesOf(app.client, { status: 'Lost' as 'Failed' }));
  assert.equal(refused.code, 'validation-failed');
});

forEachDurableService(
  'WEBHOOK-35 of many and of few deliveries with a status the newest come first, and those of one webhook alone',
  async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: ['1h'], DisableAfterConsecutiveFailures: 1000 }));
    const server = await receiver(t, (request, response) =>
      response.writeHead(request.url === '/bad' ? 500 : 204).end(),
    );
    await save(app.client, `${server.url}/bad`);
    await save(app.client, `${server.url}/good`, { name: 'other' });
    const made: Record<string, string[]> = { crm: [], other: [] };
    for (const name of ['crm', 'other', 'crm', 'crm', 'other'])
      for (let count = 0; count < 5; count += 1) {
        made[name]?.unshift((await sendTest(app.client, name)).deliveryId ?? '');
        await app.clock.advance(10);
      }
    await eventually('each was attempted', () => server.received.length === 25);
    const listed = async (name: string, status: 'Pending' | 'Delivered' | 'Failed' | 'Dropped', take = 100) =>
      (await deliveriesOf(app.client, { status, take }, name)).map(({ id }) => id);
    await eventually('the last ends', async () => (await listed('other', 'Delivered')).length === 10);
    assert.deepEqual(await listed('crm', 'Pending'), made['crm']);
    assert.deepEqual(await listed('crm', 'Pending', 4), made['crm']?.slice(0, 4));
    assert.deepEqual(await listed('crm', 'Delivered'), []);
    assert.deepEqual(await listed('other', 'Delivered'), made['other']);
    assert.deepEqual(await listed('other', 'Pending'), []);
    const acme = app.inTenant('acme');
    const theirs = await refusal(
      acme.webhooks.deliveries({ params: { name: 'other' }, query: { status: 'Delivered' } }),
    );
    assert.equal(theirs.status, 404);
    // A webhook of the same name in another tenant has deliveries of its own.
    await save(acme, `${server.url}/good`, {
      name: 'other',
      secretConfigurationKey: 'Service:WebhookSecrets:acme:crm',
    });
    assert.deepEqual(await deliveriesOf(acme, { status: 'Delivered' }, 'other'), []);
    const { deliveryId } = await sendTest(acme, 'other');
    const [pending] = await deliveriesOf(acme, { status: 'Pending' }, 'other');
    assert.equal(pending?.id, deliveryId);
    assert.deepEqual(await listed('other', 'Pending'), []);
    await save(app.client, `${server.url}/bad`, { enabled: false });
    assert.deepEqual(await listed('crm', 'Dropped'), made['crm']);
    assert.deepEqual(await listed('crm', 'Pending'), []);
    assert.deepEqual(await listed('other', 'Delivered'), made['other']);
  },
);

forEachDurableService('JOB-34 a delivery is sent again under its webhook-id, whatever it came to', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: ['1m'] }));
  let status = 200;
  const server = await receiver(t, (_request, response) => response.writeHead(status).end());
  await save(app.client, server.url);
  const { deliveryId: id } = await sendTest(app.client);
  assert.ok(id !== null);
  await newest(app.client, 'it was delivered', (row) => row.status === 'Delivered');
  const retry = async () => (await app.client.webhooks.retry({ params: { ...params, id } })).body;
  status = 500;
  const pending = await retry();
  assert.deepEqual([pending.id, pending.status, pending.attempt, pending.deliveredAt], [id, 'Pending', 1, null]);
  const failed = await newest(app.client, 'it failed once more', ({ attempt }) => attempt === 2);
  assert.deepEqual([failed.status, failed.error], ['Pending', 'http-status'], 'its delays begin anew');
  const { job } = (await app.client.jobs.get({ params: { id } })).body;
  assert.equal(job.maxAttempts, 2, 'one more than there are delays');
  assert.equal((await retry()).status, 'Pending', 'one that is pending is sent now');
  await newest(app.client, 'it has failed', ({ attempt, status: now }) => attempt === 3 && now === 'Failed');
  status = 204;
  await retry();
  await newest(app.client, 'it was delivered', (row) => row.status === 'Delivered' && row.attempt === 4);
  assert.deepEqual(new Set(server.received.map((request) => verified(request).id)), new Set([id]));
  assert.equal(server.received.length, 4);
  await save(app.client, server.url, { enabled: false });
  const refused = await refusal(app.client.webhooks.retry({ params: { ...params, id } }));
  assert.deepEqual([refused.status, refused.code], [409, 'webhook-disabled']);
});

forEachDurableService(
  'the deliveries of a time range are sent again, by default those that failed',
  async (open, t) => {
    const app = await open(webhookSetup({ RetryDelays: [], DisableAfterConsecutiveFailures: 100 }));
    let status = 500;
    const server = await receiver(t, (_request, response) => response.writeHead(status).end());
    await save(app.client, server.url);
    const times: string[] = [];
    const ids: string[] = [];
    for (const index of [1, 2, 3]) {
      if (index === 3) status = 200;
      ids.push((await sendTest(app.client)).deliveryId ?? '');
      const { createdAt } = await newest(
        app.client,
        `delivery ${index} has ended`,
        (row) => row.id === ids.at(-1) && row.status !== 'Pending',
      );
      // A range begins with the moment of one, and ends before that of another.
      times.push(createdAt);
      await app.clock.advance(minute);
    }
    const [first = '', second = ''] = times;
    const range = async (body: { from: string; to?: string; statuses?: ('Failed' | 'Delivered')[] }) =>
      (await app.client.webhooks.retryRange({ params, body })).body;
    assert.deepEqual(await range({ from: first, to: first }), { name: 'crm', queued: 0, more: false, nextFrom: null });
    assert.deepEqual(await range({ from: first, to: second }), { name: 'crm', queued: 1, more: false, nextFrom: null });
    await eventually(
      'the first was delivered',
      async () => (await deliveriesOf(app.client, { status: 'Failed' })).length === 1,
    );
    assert.deepEqual(await range({ from: first }), { name: 'crm', queued: 1, more: false, nextFrom: null });
    await eventually(
      'all were delivered',
      async () => (await deliveriesOf(app.client, { status: 'Delivered' })).length === 3,
    );
    assert.deepEqual(await range({ from: first, statuses: ['Delivered'] }), {
      name: 'crm',
      queued: 3,
      more: false,
      nextFrom: null,
    });
    await eventually('all were sent again', () => server.received.length === 8);
    const counted = Map.groupBy(server.received, (request) => verified(request).id);
    assert.deepEqual(
      ids.map((id) => counted.get(id)?.length),
      [3, 3, 2],
    );
  },
);

overHttp(
  'a range of more deliveries than one request takes goes on behind them, whatever became of them',
  async (open) => {
    const app = await open(webhookSetup({}, { service: { Scheduling: { RunWorker: false } } }));
    await save(app.client, 'http://127.0.0.1:9/');
    const from = new Date(app.clock.now() - minute).toISOString();
    for (let left = 1050; left > 0; left -= 50)
      await Promise.all(Array.from({ length: 50 }, () => sendTest(app.client)));
    await app.clock.advance(minute);
    // Of a webhook that is disabled all that waits is dropped, also what has just been put in line again.
    const dropAll = async (): Promise<void> => {
      await save(app.client, 'http://127.0.0.1:9/', { enabled: false });
      await save(app.client, 'http://127.0.0.1:9/');
    };
    await dropAll();
    const range = async (start: string) =>
      (await app.client.webhooks.retryRange({ params, body: { from: start } })).body;
    const first = await range(from);
    assert.ok(first.more && first.nextFrom !== null);
    await dropAll();
    const rest = await range(first.nextFrom);
    assert.deepEqual([first.queued + rest.queued, rest.more, rest.nextFrom], [1050, false, null]);
    assert.ok(first.queued >= 1000 && rest.queued > 0, String(first.queued));
  },
);

forEachDurableService('WebhookDeliveries: what was delivered goes with its age, and nothing else', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: [] }));
  let status = 200;
  const server = await receiver(t, (_request, response) => response.writeHead(status).end());
  await save(app.client, server.url);
  await sendTest(app.client);
  await newest(app.client, 'it was delivered', (row) => row.status === 'Delivered');
  status = 500;
  await sendTest(app.client);
  await newest(app.client, 'it has failed', (row) => row.status === 'Failed');
  await app.clock.jump(2 * 86_400_000);
  await app.client.retention.save({ params: { target: 'WebhookDeliveries' }, body: { maxAgeDays: 1 } });
  const { body: preview } = await app.client.retention.preview({ query: { target: 'WebhookDeliveries' } });
  assert.equal(preview[0]?.matchingRows, 1);
  await app.client.retention.run({ query: { target: 'WebhookDeliveries' } });
  const left = await eventually('one is left', async () => {
    const rows = await deliveriesOf(app.client);
    return rows.length === 1 ? rows : null;
  });
  assert.equal(left[0]?.status, 'Failed');
});

forEachDurableService('JOB-20 jobs that the service queues for itself can be left out of the list', async (open, t) => {
  const app = await open(webhookSetup());
  const server = await receiver(t);
  await save(app.client, server.url, { events: ['run.completed'] });
  await enqueue(app.client, 'helper', 'Hi');
  await messages(server, 1);
  const keys = async (query: { readonly background?: boolean; readonly handlerKey?: string }) =>
    (await app.client.jobs.list({ query })).body.map(({ handlerKey }) => handlerKey).sort();
  const all = ['acp.agent-run', 'acp.webhook-delivery'];
  assert.deepEqual(await keys({}), all);
  assert.deepEqual(await keys({ background: true }), all);
  assert.deepEqual(await keys({ background: false }), ['acp.agent-run']);
  assert.deepEqual(await keys({ background: false, handlerKey: 'acp.webhook-delivery' }), ['acp.webhook-delivery']);
});
