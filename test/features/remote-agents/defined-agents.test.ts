import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { newId } from '../../../src/core/ids.ts';
import type { RemoteAgentDescriptor } from '../../../src/features/remote-agents/remote-agents.schema.ts';
import { type AppSetup, forEachDurableService, forEachService, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { eventually } from '../../support/eventually.ts';
import { refused } from '../mcp-servers/mcp-world.ts';
import { opensRun } from '../runs/other-process.ts';
import { getRun, refusal, runJson } from '../runs/run-calls.ts';
import { artifact, cardOf, childOf, rawAgent, remoteSetup, type Settings, task } from './remote-world.ts';

/** A service whose host names no remote agent. */
const setup = ({ service, ...more }: AppSetup = {}): AppSetup => {
  const { host: _host, ...own } = remoteSetup('');
  return { ...own, agents: [], ...more, service: { ...own.service, ...service } };
};

const model = { provider: 'demo', model: 'demo-1' };

const save = async ({ client }: Pick<TestApp, 'client'>, name: string, ...remoteAgents: Settings[]) =>
  (await client.agents.create({ body: { name, model, remoteAgents } as never })).body;

const echo = ({ params }: { readonly params: Settings }) => {
  const { message } = params as { message?: { parts: { text: string }[] } };
  return { task: task('COMPLETED', { artifacts: [artifact(`You said ${message?.parts[0]?.text}`)] }) };
};

forEachService('AGENT-46 a definition names an agent of another system by the address of its card', async (open, t) => {
  const partner = await rawAgent(t, echo);
  const app = await open(setup());
  const saved = await save(app, 'boss', {
    name: 'partner',
    cardUrl: partner.cardUrl,
    requiresApproval: false,
    effect: 'read',
  });
  assert.deepEqual(saved.remoteAgents, [
    {
      name: 'partner',
      cardUrl: partner.cardUrl,
      description: null,
      authorizationConfigurationKey: null,
      requiresApproval: false,
      effect: 'Read',
      pinning: 'Warn',
      timeoutMs: 300_000,
    },
  ]);
  const { output, runId } = await runJson(app.client, 'boss', 'ask this');
  assert.equal(output, 'You said this');
  const child = await childOf(app, runId);
  assert.deepEqual(
    [child?.agentName, child?.status, child?.usage, child?.remoteTask],
    [
      'partner',
      'Completed',
      null,
      { agent: 'boss:partner', taskId: 'task-1', contextId: 'context-1', state: 'COMPLETED' },
    ],
  );
  const [record] = (await app.client.runs.tools({ params: { runId } })).body;
  assert.deepEqual(
    [record?.toolName, record?.source, record?.result],
    ['call_partner', 'boss:partner', 'You said this'],
  );

  const [listed] = (await app.client.remoteAgents.list({})).body;
  assert.deepEqual(
    [listed?.name, listed?.toolName, listed?.agentName, listed?.effect, listed?.status.state, listed?.status.pin],
    ['boss:partner', 'call_partner', 'boss', 'Read', 'Connected', 'None'],
  );
  const free = { cardUrl: partner.cardUrl, requiresApproval: false };
  await save(app, 'also', { ...free, name: 'zoe' }, { ...free, name: 'adam' });
  const names = (await app.client.remoteAgents.list({})).body.map(({ name }) => name);
  assert.deepEqual(names, ['also:adam', 'also:zoe', 'boss:partner']);
  for (const name of ['nobody:partner', 'boss:nobody', '\u0000:partner', ':partner', 'boss:'])
    assert.deepEqual(await refused(app.client.remoteAgents.pin({ params: { name } })), [404, 'not-found'], name);
  await app.client.agents.remove({ params: { name: 'also' } });
  // It is one of that definition: others have to name it themselves, and other tenants see nothing of it.
  const other = app.client.agents.create({ body: { name: 'other', model, callableAgentNames: ['partner'] } });
  assert.equal((await refusal(other)).errors?.[0]?.path, 'callableAgentNames[0]');
  assert.deepEqual((await app.inTenant('acme').remoteAgents.list({})).body, []);
  assert.deepEqual(await refused(app.inTenant('acme').remoteAgents.pin({ params: { name: 'boss:partner' } })), [
    404,
    'not-found',
  ]);

  // Each version has its own.
  const body = { name: 'boss', model, remoteAgents: [] };
  const { body: second } = await app.client.agents.save({ params: { name: 'boss' }, body });
  assert.equal(second.version, 2);
  assert.deepEqual((await app.client.remoteAgents.list({})).body, []);
  const asked = partner.asked.length;
  await runJson(app.client, 'boss', 'ask that').catch(() => undefined);
  assert.equal(partner.asked.length, asked, 'a definition without it does not call it');
});

forEachService(
  'AGENT-46 AGENT-18 what a definition says of a remote agent is checked before it is saved',
  async (open) => {
    const host = { RemoteAgents: { known: { CardUrl: 'https://known.example/card' } } };
    const app = await open(setup({ host, service: { Egress: { AllowPrivateNetworkTargets: false } } }));
    const one = { name: 'partner', cardUrl: 'https://partner.example/card.json' };
    const key = 'Service:McpSecrets:partner';
    const findings = async (more: Settings, ...remoteAgents: Settings[]) => {
      const body = { name: 'boss', model, ...more, remoteAgents };
      const { messages: found } = (await app.client.agents.validate({ body: body as never })).body;
      return found.filter(({ severity }) => severity === 'Error').map(({ code, path }) => `${code} ${path}`);
    };
    assert.deepEqual(await findings({}, { ...one, authorizationConfigurationKey: key }), []);
    for (const [wrong, ...expected] of [
      [{ name: 'a.b' }, 'invalid-name remoteAgents[0].name'],
      [{ name: 'x'.repeat(33) }, 'invalid-name remoteAgents[0].name'],
      [{ cardUrl: 'card.json' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: 'https://partner.example\t.evil.example/' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: 'https://partner.example/\u202e' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: `https://partner.example/${'x'.repeat(2048)}` }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: 'file:///etc/passwd' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: 'https://ann:pass@partner.example/' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: 'http://127.0.0.1:9/card' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [{ cardUrl: 'http://169.254.169.254/latest' }, 'value-out-of-range remoteAgents[0].cardUrl'],
      [
        { cardUrl: 'http://partner.example/card', authorizationConfigurationKey: key },
        'value-out-of-range remoteAgents[0].cardUrl',
      ],
      [
        { authorizationConfigurationKey: 'Host:AuthToken' },
        'value-out-of-range remoteAgents[0].authorizationConfigurationKey',
      ],
      [{ effect: 'Nothing' }, 'value-out-of-range remoteAgents[0].effect'],
      [{ pinning: 'Perhaps' }, 'value-out-of-range remoteAgents[0].pinning'],
      [{ timeoutMs: 999 }, 'value-out-of-range remoteAgents[0].timeoutMs'],
      [{ timeoutMs: 86_400_001 }, 'value-out-of-range remoteAgents[0].timeoutMs'],
      [{ description: 'x'.repeat(2001) }, 'too-long remoteAgents[0].description'],
      [{ url: 'https://partner.example/' }, 'unknown-field remoteAgents[0].url'],
    ] as const)
      assert.deepEqual(await findings({}, { ...one, ...wrong }), expected, JSON.stringify(wrong));
    assert.deepEqual(await findings({}, one, one), ['duplicate-entry remoteAgents[1].name']);
    const many = Array.from({ length: 17 }, (_, index) => ({ ...one, name: `p${index}` }));
    assert.deepEqual(await findings({}, ...many), ['too-long remoteAgents']);
    assert.deepEqual(await findings({}, ...many.slice(1)), []);
    // The model cannot tell two of one name.
    assert.deepEqual(await findings({ callableAgentNames: ['known'] }, { ...one, name: 'known' }), [
      'tool-name-collision remoteAgents[0].name',
    ]);
    assert.deepEqual(await findings({ toolNames: ['call_known'] }, { ...one, name: 'known' }), [
      'tool-name-collision remoteAgents[0].name',
    ]);
    const problem = await refusal(save(app, 'boss', { ...one, cardUrl: 'http://10.0.0.1/card' }));
    assert.deepEqual([problem.status, problem.errors?.[0]?.path], [400, 'remoteAgents[0].cardUrl']);

    // Who is called by another agent cannot ask anybody.
    await save(app, 'asking', one);
    await save(app, 'free', { ...one, requiresApproval: false });
    const body = { name: 'top', model, callableAgentNames: ['asking', 'free'] };
    const { messages: warned } = (await app.client.agents.validate({ body })).body;
    assert.deepEqual(
      warned.map(({ code, path }) => `${code} ${path}`),
      ['child-needs-approval callableAgentNames[0]'],
    );
  },
);

forEachService(
  'AGENT-46 SEC-43 a credential goes to the card of a definition once somebody has approved that address, and nowhere else',
  async (open, t) => {
    const partner = await rawAgent(t, echo);
    const elsewhere = await rawAgent(t, echo);
    const app = await open(setup());
    const remote = {
      name: 'partner',
      cardUrl: partner.cardUrl,
      authorizationConfigurationKey: 'Service:McpSecrets:partner',
      requiresApproval: false,
    };
    await save(app, 'boss', remote);
    const said = async () => (await runJson(app.client, 'boss', 'ask this')).output;
    const params = { name: 'boss:partner' };
    const listed = async () => (await app.client.remoteAgents.list({})).body[0]?.status;
    const nobody = 'Tool failed: nobody has approved partner';
    assert.equal(await said(), nobody);
    assert.deepEqual([(await listed())?.state, (await listed())?.pin], ['Refused', 'None']);
    assert.deepEqual(await refused(app.client.remoteAgents.pin({ params })), [502, 'remote-agent-failed']);
    assert.equal(partner.received.length, 0, 'nothing was sent, not even a question for the card');

    // Who approves says of what; somebody may have looked at another address, or another key.
    const { cardUrl, authorizationConfigurationKey } = remote;
    const approve = (body: Settings) => app.client.remoteAgents.approve({ params, body });
    assert.equal((await refusal(approve({}))).errors?.[0]?.path, 'cardUrl');
    assert.equal((await refusal(approve({ cardUrl }))).errors?.[0]?.path, 'authorizationConfigurationKey');
    for (const other of [{ cardUrl: elsewhere.cardUrl }, { authorizationConfigurationKey: 'Service:McpSecrets:other' }])
      assert.deepEqual(await refused(approve({ cardUrl, authorizationConfigurationKey, ...other })), [
        409,
        'remote-card-changed',
      ]);
    assert.equal(partner.received.length, 0);

    const approved = { params, body: { cardUrl, authorizationConfigurationKey } };
    const { status } = (await app.client.remoteAgents.approve(approved)).body;
    assert.deepEqual([status.state, status.pin], ['Connected', 'Same']);
    assert.equal(await said(), 'You said this');
    assert.ok(partner.received.every(({ headers }) => headers.authorization === 'Bearer s3cret-of-the-partner'));
    assert.deepEqual((await app.client.remoteAgents.pin({ params })).body.changes, []);
    const [entry] = (await trail(app)).filter(({ action }) => action === 'remote-agent.approve');
    assert.equal(entry?.entity, 'remote-agent:boss:partner');
    const { hash: _hash, changes: _changes, ...what } = (entry?.after ?? {}) as Settings;
    assert.deepEqual(what, { cardUrl, authorizationConfigurationKey });
    const [shown] = (await app.client.remoteAgents.list({})).body;
    assert.equal(shown?.authorizationConfigurationKey, authorizationConfigurationKey);

    // Whoever may write definitions takes the credential nowhere else.
    const move = (more: Settings) =>
      app.client.agents.save({
        params: { name: 'boss' },
        body: { name: 'boss', model, remoteAgents: [{ ...remote, ...more }] },
      });
    await move({ cardUrl: elsewhere.cardUrl });
    assert.equal(await said(), nobody);
    await move({ authorizationConfigurationKey: 'Service:McpSecrets:another' });
    assert.equal(await said(), nobody);
    await save(app, 'thief', { ...remote, name: 'partner' });
    assert.equal((await runJson(app.client, 'thief', 'ask this')).output, nobody);
    assert.equal(elsewhere.received.length, 0);
    await move({});
    assert.equal(await said(), 'You said this');
    // Where its card sends messages elsewhere, that is another card.
    partner.card = cardOf(`${elsewhere.url}/a2a`);
    await app.client.remoteAgents.pin({ params });
    assert.equal(await said(), 'Tool failed: nobody has approved where partner takes messages');
    assert.equal(elsewhere.received.length, 0);
  },
);

forEachService(
  'AGENT-46 SEC-43 an approval that is taken back ends for every address, also where no definition has the agent',
  async (open, t) => {
    const partner = await rawAgent(t, echo);
    const app = await open(setup({ host: { Tenancy: { Enabled: true } } }));
    const key = { authorizationConfigurationKey: 'Service:McpSecrets:partner' };
    const remote = (name: string, path = '') => ({ name, cardUrl: `${partner.cardUrl}${path}`, ...key });
    const free = { requiresApproval: false };
    const has = (...remoteAgents: Settings[]) =>
      app.client.agents.save({ params: { name: 'boss' }, body: { name: 'boss', model, remoteAgents } as never });
    const params = { name: 'boss:partner' };
    const approve = ({ name, cardUrl }: ReturnType<typeof remote>) =>
      app.client.remoteAgents.approve({ params: { name: `boss:${name}` }, body: { cardUrl, ...key } });
    const withdraw = (client = app.client) => client.remoteAgents.withdraw({ params });
    const pins = async () => (await app.client.remoteAgents.list({})).body.map(({ status }) => status.pin);
    const said = async () => (await runJson(app.client, 'boss', 'ask this')).output;

    await save(app, 'boss', { ...remote('partner'), ...free });
    assert.deepEqual(await refused(withdraw()), [404, 'not-found']);
    await approve(remote('partner'));
    assert.equal(await said(), 'You said this');
    await has(remote('partner', '?moved'), remote('partner2'));
    await approve(remote('partner', '?moved'));
    await approve(remote('partner2'));
    assert.deepEqual(await refused(withdraw(app.inTenant('acme'))), [404, 'not-found'], 'another tenant has its own');
    assert.deepEqual(await pins(), ['Same', 'Same']);
    await app.client.agents.remove({ params: { name: 'boss' } });
    await withdraw();
    assert.deepEqual(await refused(withdraw()), [404, 'not-found'], 'once');

    const asked = partner.received.length;
    await save(app, 'boss', remote('partner', '?moved'), remote('partner2'));
    assert.deepEqual(await pins(), ['None', 'Same'], 'what has another name stays');
    await has({ ...remote('partner'), ...free });
    assert.equal(await said(), 'Tool failed: nobody has approved partner');
    assert.deepEqual(await pins(), ['None']);
    assert.equal(partner.received.length, asked, 'nothing is sent');
    const [entry, ...others] = (await trail(app)).filter(({ action }) => action === 'remote-agent.withdraw');
    assert.deepEqual([entry?.entity, entry?.after, others], ['remote-agent:boss:partner', null, []]);
    const before = entry?.before as unknown as readonly { readonly hash: string; readonly pinnedBy: string }[];
    assert.deepEqual(
      before.map(({ hash, pinnedBy }) => [hash.length, pinnedBy]),
      Array.from({ length: 2 }, () => [64, entry?.actor]),
    );
  },
);

forEachService('AGENT-46 SEC-43 a tenant names its own credentials, and approves for itself', async (open, t) => {
  const partner = await rawAgent(t, echo);
  const McpSecrets = { partner: 'Bearer of-the-default', acme: { partner: 'Bearer of-acme' } };
  const app = await open(setup({ host: { Tenancy: { Enabled: true } }, service: { McpSecrets } }));
  const acme = { client: app.inTenant('acme') };
  const remote = { name: 'partner', cardUrl: partner.cardUrl, requiresApproval: false };
  const named = (key: string) => ({ ...remote, authorizationConfigurationKey: `Service:McpSecrets:${key}` });
  const problem = await refusal(save(acme, 'boss', named('partner')));
  assert.equal(problem.errors?.[0]?.path, 'remoteAgents[0].authorizationConfigurationKey');
  await save(acme, 'boss', named('acme:partner'));
  await save(app, 'boss', named('partner'));
  const params = { name: 'boss:partner' };
  const approve = (client: TestApp['client'], key: string) => {
    const body = { cardUrl: partner.cardUrl, authorizationConfigurationKey: `Service:McpSecrets:${key}` };
    return client.remoteAgents.approve({ params, body });
  };
  await approve(app.client, 'partner');
  const said = async () => (await runJson(acme.client, 'boss', 'ask this')).output;
  assert.equal(await said(), 'Tool failed: nobody has approved partner');
  await approve(acme.client, 'acme:partner');
  assert.equal(await said(), 'You said this');
  assert.equal(partner.received.at(-1)?.headers.authorization, 'Bearer of-acme');
});

forEachService(
  'AGENT-46 MCP-19 a definition that says Block has its card approved first, and again once it changes',
  async (open, t) => {
    const partner = await rawAgent(t, echo);
    const app = await open(setup());
    await save(app, 'boss', { name: 'partner', cardUrl: partner.cardUrl, requiresApproval: false, pinning: 'Block' });
    const params = { name: 'boss:partner' };
    const said = async () => (await runJson(app.client, 'boss', 'ask this')).output;
    assert.equal(await said(), 'Tool failed: nobody has approved partner');
    assert.equal((await app.client.remoteAgents.pin({ params })).body.pinned, false);
    await app.client.remoteAgents.approve({ params, body: {} });
    assert.equal(await said(), 'You said this');
    partner.card = { ...(partner.card as object), version: '8' };
    await app.client.remoteAgents.pin({ params });
    assert.equal(await said(), 'Tool failed: partner is not as it was approved');
  },
);

forEachDurableService(
  'RUN-78 AGENT-46 the task of a lost run is canceled at the agent that its definition names',
  async (open, t) => {
    const canceled: string[] = [];
    const partner = await rawAgent(t, ({ method, params }) => {
      if (method === 'CancelTask') canceled.push(params.id);
      return task(method === 'CancelTask' ? 'CANCELED' : 'WORKING', { id: params.id });
    });
    const first = await open(setup());
    const remote = { cardUrl: partner.cardUrl, requiresApproval: false };
    await save(first, 'boss', { ...remote, name: 'partner' }, { ...remote, name: 'reader', effect: 'Read' });
    const ids: Record<string, string> = {};
    for (const agent of ['boss:partner', 'boss:reader', 'boss:gone', 'gone:partner']) {
      ids[agent] = newId();
      const remoteTask = JSON.stringify({ agent, taskId: `task of ${agent}`, contextId: null, state: 'WORKING' });
      await opensRun(first.store.open(), ids[agent], { agentName: 'partner', remoteTask });
    }
    await first.close();
    const RunReconciliation = { Enabled: true, OrphanThreshold: '30s', ScanInterval: '10s', HeartbeatInterval: '10s' };
    const second = await open(setup({ folder: first.folder, service: { RunReconciliation } }));
    const state = async (agent: string) => (await getRun(second.client, ids[agent] ?? '')).remoteTask?.state;
    await eventually('the end of the task', async () => {
      await second.clock.advance(10_000);
      return (await state('boss:partner')) === 'CANCELED';
    });
    // A call that may be made again has the task go on, and of an agent that is not there any more nobody can be told.
    assert.deepEqual(canceled, ['task of boss:partner']);
    for (const agent of ['boss:reader', 'boss:gone', 'gone:partner']) {
      const { status, error } = await getRun(second.client, ids[agent] ?? '');
      assert.equal(status, 'Failed', agent);
      assert.doesNotMatch(error?.message ?? '', /is told to cancel/, agent);
    }
  },
);

forEachService(
  'AGENT-46 a list that definitions make long ends, and says what it has not looked at',
  async (open, t) => {
    const waiting: ServerResponse[] = [];
    const partner = await rawAgent(t, () => null);
    partner.card = (response) => waiting.push(response);
    const app = await open(setup());
    const free = { cardUrl: partner.cardUrl, requiresApproval: false };
    const names = (count: number) => Array.from({ length: count }, (_, at) => String.fromCharCode(97 + at));
    const several = (of: string, count: number) =>
      save(app, of, ...names(count).map((name) => ({ ...free, name, cardUrl: `${free.cardUrl}?${of}${name}` })));
    await several('first', 16);
    await several('second', 16);
    await several('third', 1);
    const states = async (list: Promise<{ readonly body: readonly RemoteAgentDescriptor[] }>) =>
      (await list).body.map(({ status }) => status.state).join(' ');
    const answer = () => {
      for (const response of waiting.splice(0))
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify(cardOf(`${partner.url}/a2a`)));
    };
    const all = (state: string, count: number) => Array.from({ length: count }, () => state);

    const list = states(app.client.remoteAgents.list({}));
    await eventually('sixteen cards are asked for', () => waiting.length === 16);
    await app.clock.advance(6000);
    answer();
    await eventually('sixteen cards are asked for', () => waiting.length === 16);
    await app.clock.advance(6000);
    answer();
    assert.equal(await list, [...all('Connected', 32), 'Unknown'].join(' '));
    // What is known by now takes no time: the next list has the rest.
    const next = states(app.client.remoteAgents.list({}));
    await eventually('one card is asked for', () => waiting.length === 1);
    answer();
    assert.equal(await next, all('Connected', 33).join(' '));
  },
);
