import assert from 'node:assert/strict';
import type { WebhookEventType, WebhookSaveRequest } from '../../../src/features/webhooks/webhooks.schema.ts';
import { forEachDurableService, type OpenApp, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import {
  crmKey,
  crmSecret,
  deliveriesOf,
  get,
  messages,
  newest,
  receiver,
  save,
  sendTest,
  webhookSetup,
} from './webhook-world.ts';

const url = 'https://hooks.example.com/acp?tenant=1';
const params = { name: 'crm' };

const codeOf = async (app: TestApp, body: Partial<WebhookSaveRequest>): Promise<string> =>
  (
    await refusal(
      app.client.webhooks.save({
        params,
        body: { url, events: ['run.failed'], secretConfigurationKey: crmKey, ...body },
      }),
    )
  ).code;

const strict = (open: OpenApp, more: Readonly<Record<string, unknown>> = {}) =>
  open(webhookSetup({ AllowInsecureHttp: false, AllowPrivateNetworkTargets: false, ...more }));

forEachDurableService(
  'WEBHOOK-1 WEBHOOK-2 WEBHOOK-3 a subscription is replaced as a whole and keeps its id',
  async (open) => {
    const app = await open(webhookSetup());
    assert.deepEqual((await app.client.webhooks.list({})).body, []);
    const first = await save(app.client, url, { headers: { 'x-team': 'sales' } });
    assert.deepEqual(
      [first.name, first.url, first.tenantId, first.resolved, first.enabled, first.disabledReason],
      ['crm', url, 'default', true, true, null],
    );
    assert.deepEqual(first.headers, { 'x-team': '***' });
    assert.deepEqual(await get(app.client), first);
    await save(app.client, url, { name: 'a-first' });
    const second = await save(app.client, `${url}&more`, {
      events: ['job.failed'],
      secretConfigurationKey: 'Service:WebhookSecrets:unknown',
      enabled: false,
    });
    assert.deepEqual([second.id, second.createdAt], [first.id, first.createdAt]);
    assert.deepEqual(
      [second.url, second.events, second.headers, second.resolved, second.enabled],
      [`${url}&more`, ['job.failed'], {}, false, false],
    );
    assert.deepEqual(
      (await app.client.webhooks.list({})).body.map(({ name }) => name),
      ['a-first', 'crm'],
    );
    await app.close();
    const next = await open(webhookSetup({}, { folder: app.folder, agents: [] }));
    assert.deepEqual(await get(next.client), second);
  },
);

forEachDurableService(
  'WEBHOOK-1 an unknown name, and that of another tenant, is 404 on every operation',
  async (open) => {
    const app = await open(webhookSetup());
    await save(app.client, url);
    const { webhooks } = app.inTenant('other');
    assert.deepEqual((await webhooks.list({})).body, []);
    const id = '0190b6a2-0000-7000-8000-000000000000';
    const body = { from: '2026-01-01T00:00:00Z' };
    for (const call of [
      () => webhooks.get({ params }),
      () => webhooks.remove({ params }),
      () => webhooks.test({ params }),
      () => webhooks.deliveries({ params, query: {} }),
      () => webhooks.retry({ params: { ...params, id } }),
      () => webhooks.retryRange({ params, body }),
      () => app.client.webhooks.get({ params: { name: 'no such name' } }),
      () => app.client.webhooks.retry({ params: { ...params, id } }),
    ])
      assert.equal((await refusal(call())).code, 'not-found');
  },
);

forEachDurableService(
  'WEBHOOK-4 WEBHOOK-5 a URL is absolute, https, and holds neither user nor fragment',
  async (open) => {
    const app = await strict(open);
    for (const bad of [
      'hooks.example.com',
      '/hooks',
      'https://',
      'https://user@hooks.example.com/',
      'https://:secret@hooks.example.com/',
      'https://hooks.example.com/#part',
      'https://hooks.example.com/#',
      'http://hooks.example.com/',
      'ftp://hooks.example.com/',
      `https://hooks.example.com/${'x'.repeat(2048)}`,
    ])
      assert.equal(await codeOf(app, { url: bad }), 'validation-failed', bad);
    const longest = `https://hooks.example.com/${'x'.repeat(2048 - 26)}`;
    assert.equal((await save(app.client, longest)).url, longest);
    const insecure = await strict(open, { AllowInsecureHttp: true });
    assert.equal((await save(insecure.client, 'http://hooks.example.com/')).url, 'http://hooks.example.com/');
    assert.equal(await codeOf(insecure, { url: 'ftp://hooks.example.com/' }), 'validation-failed');
    assert.equal(await codeOf(insecure, { url: 'http://127.0.0.1/' }), 'target-not-allowed');
  },
);

forEachDurableService(
  'WEBHOOK-8 EGR-6 private literals and localhost are refused, unless either setting allows them',
  async (open) => {
    const app = await strict(open);
    const targets = [
      '127.0.0.1',
      '10.1.2.3',
      '[::1]',
      '0x7f.1',
      '2130706433',
      '[::ffff:10.0.0.1]',
      'localhost',
      'a.localhost.',
    ];
    for (const host of targets)
      assert.equal(await codeOf(app, { url: `https://${host}/` }), 'target-not-allowed', host);
    for (const service of [
      { Egress: { AllowPrivateNetworkTargets: true }, Webhooks: { AllowPrivateNetworkTargets: false } },
      { Egress: { AllowPrivateNetworkTargets: false }, Webhooks: { AllowPrivateNetworkTargets: true } },
    ]) {
      const lifted = await open({ service });
      for (const host of targets) assert.equal((await save(lifted.client, `https://${host}/`)).enabled, true);
    }
  },
);

forEachDurableService('WEBHOOK-6 events are known kinds, at least one, each once', async (open) => {
  const app = await open(webhookSetup());
  const other = 'run.exploded' as WebhookEventType;
  for (const events of [[], [other], ['run.failed', 'run.failed'], ['run.failed', 'RUN.FAILED' as WebhookEventType]])
    assert.equal(await codeOf(app, { events: events as WebhookEventType[] }), 'validation-failed', String(events));
  assert.deepEqual((await save(app.client, url, { events: ['webhook.test'] })).events, ['webhook.test']);
});

const tenancy = {
  token: 'a-shared-token-of-the-host',
  host: { AuthToken: 'a-shared-token-of-the-host', Tenancy: { Enabled: true, AllowHeaderResolution: true } },
};

forEachDurableService('WEBHOOK-7 a tenant names secrets below the prefix, in its own part', async (open) => {
  const setup = webhookSetup(
    {},
    { ...tenancy, service: { WebhookSecrets: { crm: crmSecret, acme: { crm: crmSecret } } } },
  );
  const app = await open(setup);
  const acme = app.inTenant('acme');
  const keyCode = async (client: typeof acme, key: string): Promise<string> =>
    (
      await refusal(
        client.webhooks.save({ params, body: { url, events: ['run.failed'], secretConfigurationKey: key } }),
      )
    ).code;
  for (const key of [
    'Service:ProviderKeys:crm',
    'Service:WebhookSecrets:',
    'WebhookSecrets:crm',
    'Host:AuthToken',
    'crm',
  ])
    assert.equal(await keyCode(app.client, key), 'configuration-key-not-allowed', key);
  assert.equal(await keyCode(app.client, 'Service:WebhookSecrets:acme:crm'), 'configuration-key-not-allowed');
  assert.equal(await keyCode(acme, crmKey), 'configuration-key-not-allowed');
  assert.equal(await keyCode(acme, 'Service:WebhookSecrets:other:crm'), 'configuration-key-not-allowed');
  assert.equal(await keyCode(acme, ''), 'validation-failed');
  assert.equal(await keyCode(acme, 'x'.repeat(257)), 'validation-failed');
  assert.equal((await save(acme, url, { secretConfigurationKey: 'Service:WebhookSecrets:acme:crm' })).resolved, true);
  const later = await save(acme, url, { secretConfigurationKey: 'Service:WebhookSecrets:acme:later' });
  assert.equal(later.resolved, false, 'it need not have a value yet');
});

forEachDurableService(
  'WEBHOOK-9 WEBHOOK-10 headers are few, printable, no credentials, and never shown',
  async (open) => {
    const app = await open(webhookSetup({ MaxExtraHeaders: 3 }));
    const cases: readonly Record<string, string>[] = [
      { 'x y': '1' },
      { '': '1' },
      { 'x-line': 'a\r\nb' },
      { 'x-long': 'x'.repeat(1025) },
      { 'x-mark': '***' },
      { Authorization: 'Bearer x' },
      { 'PROXY-authorization': 'x' },
      { Cookie: 'x' },
      { 'set-cookie': 'x' },
      { 'X-Api-Key': 'x' },
      { 'x-a': '1', 'X-A': '2' },
      { a: '1', b: '2', c: '3', d: '4' },
    ];
    for (const headers of cases)
      assert.equal(await codeOf(app, { headers }), 'validation-failed', JSON.stringify(headers));
    const own = { 'Content-Type': 'x', HOST: 'x', 'Webhook-Id': 'x', connection: 'close', 'user-agent': 'x' };
    const ofConnection = {
      Expect: '100-continue',
      upgrade: 'h2c',
      TE: 'gzip',
      trailer: 'x',
      'Keep-Alive': 'timeout=5',
    };
    const saved = await save(app.client, url, {
      headers: { ...own, ...ofConnection, 'x-team': 'a-secret-of-sales', b: '', c: '3' },
    });
    assert.deepEqual(saved.headers, { 'x-team': '***', b: '***', c: '***' });
    const told = await trail(app);
    assert.ok(!JSON.stringify(told).includes('a-secret-of-sales'));
    assert.deepEqual((await save(app.client, url, { headers: null })).headers, {});
    assert.deepEqual((await save(app.client, url, { headers: { long: 'x'.repeat(1024) } })).headers, { long: '***' });
  },
);

forEachDurableService('WEBHOOK-9 the service sets its own headers, and sends the others', async (open, t) => {
  const app = await open(webhookSetup());
  const server = await receiver(t);
  await save(app.client, server.url, { headers: { 'X-Team': 'sales', 'Webhook-Id': 'mine' } });
  await sendTest(app.client);
  const [message] = await messages(server, 1);
  const { headers } = server.received[0] ?? assert.fail();
  assert.equal(headers['x-team'], 'sales');
  assert.notEqual(message?.id, 'mine');
});

forEachDurableService('WEBHOOK-11 a removal takes the history and what is queued along', async (open, t) => {
  const app = await open(webhookSetup({ RetryDelays: ['1h'] }));
  const server = await receiver(t, (_request, response) => response.writeHead(500).end());
  await save(app.client, server.url);
  await runJson(app.client, 'helper', 'Hi');
  await newest(app.client, 'the first attempt has failed', ({ attempt }) => attempt === 1);
  assert.equal(await app.store.count('deliveries'), 1);
  await app.client.webhooks.remove({ params });
  assert.equal(await app.store.count('deliveries'), 0);
  assert.equal((await refusal(app.client.webhooks.remove({ params }))).code, 'not-found');
  await app.clock.jump(2 * 3_600_000);
  assert.equal(server.received.length, 1);
  await runJson(app.client, 'helper', 'Hi');
  assert.equal(await app.store.count('deliveries'), 0);
});

forEachDurableService('WEBHOOK-12 a test queues one delivery, or says why it does not', async (open, t) => {
  const app = await open(webhookSetup());
  const server = await receiver(t);
  await save(app.client, server.url, { events: ['job.failed'] });
  const queued = await sendTest(app.client);
  assert.deepEqual([queued.name, queued.queued], ['crm', true]);
  const [message] = await messages(server, 1);
  assert.deepEqual(
    [message?.id, message?.type, message?.data],
    [queued.deliveryId, 'webhook.test', { tenantId: 'default', name: 'crm' }],
  );
  await save(app.client, server.url, { enabled: false });
  const disabled = await sendTest(app.client);
  assert.deepEqual([disabled.queued, disabled.deliveryId], [false, null]);
  assert.match(disabled.message, /disabled/);
  assert.equal((await deliveriesOf(app.client)).length, 1);
});

forEachDurableService(
  'WEBHOOK-12 WEBHOOK-34 switched off nothing is queued, and without a queue it is 501',
  async (open) => {
    const app = await open(webhookSetup({ Enabled: false }));
    await save(app.client, url);
    const off = await sendTest(app.client);
    assert.deepEqual([off.queued, off.deliveryId], [false, null]);
    assert.match(off.message, /switched off/);
    await runJson(app.client, 'helper', 'Hi');
    assert.deepEqual(await deliveriesOf(app.client), []);
    await app.close();
    const idle = await open(webhookSetup({}, { service: { Scheduling: { Enabled: false } } }));
    await save(idle.client, url);
    const refused = await refusal(idle.client.webhooks.test({ params }));
    assert.deepEqual([refused.status, refused.code], [501, 'scheduling-disabled']);
  },
);

forEachDurableService('WEBHOOK-13 saves and removals are told to the audit trail', async (open) => {
  const app = await open(webhookSetup());
  await save(app.client, url, { headers: { 'x-team': 'sales' } });
  await save(app.client, url, { enabled: false });
  await app.client.webhooks.remove({ params });
  const entries = (await trail(app)).filter(({ action }) => action.startsWith('webhook.'));
  assert.deepEqual(
    entries.map(({ action, entity }) => [action, entity]),
    [
      ['webhook.save', 'webhook:crm'],
      ['webhook.save', 'webhook:crm'],
      ['webhook.delete', 'webhook:crm'],
    ],
  );
});
