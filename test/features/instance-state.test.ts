import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ProblemError } from '../../src/client/problem.ts';
import { instanceState } from '../../src/core/instance-state.table.ts';
import { type AppSetup, openApp, type TestApp } from '../support/app.ts';
import { calls, openApprovals } from './approvals/approval-world.ts';
import { saveQuota } from './quotas/quota-calls.ts';
import { runJson } from './runs/run-calls.ts';
import { save, skill } from './skills/skill-bodies.ts';

const local = { provider: 'local', model: 'any' };
const simulated: AppSetup = { simulator: {}, service: { Egress: { AllowPrivateNetworkTargets: true } } };
const helper = { name: 'helper', model: local, skillNames: ['pdf'] };

/** A copy of the store, as callers meet it. */
interface Port {
  readonly setup?: AppSetup;
  open?(t: TestContext, setup: AppSetup): Promise<TestApp>;
  /** What is there before the change. */
  prepare?(app: TestApp): Promise<unknown>;
  /** What a caller notices, whose copy is in memory from then on. */
  seen(app: TestApp): Promise<unknown>;
  change(app: TestApp): Promise<unknown>;
  readonly before: unknown;
  readonly after: unknown;
  /** What a caller notices while the copy cannot be read; tables fail the start instead. */
  readonly unread?: unknown;
}

const codeOf = (error: unknown): string => {
  if (error instanceof ProblemError) return error.problem.code;
  throw error;
};

const outcome = async (app: TestApp): Promise<string> => {
  try {
    await runJson(app.client, 'helper', 'Hi');
    return 'completed';
  } catch (error) {
    return codeOf(error);
  }
};

/** The outcome of a run, or what was sent for it. */
const sentFor = async (app: TestApp, part: (request: TestApp['simulator']['requests'][number]) => unknown) => {
  const end = await outcome(app);
  return end === 'completed' ? part(app.simulator.lastRequest()) : end;
};

const systemText = ({ body }: TestApp['simulator']['requests'][number]): string | undefined =>
  (body['messages'] as { role: string; content: string }[]).find(({ role }) => role === 'system')?.content;

const plain: AppSetup = { agents: [{ name: 'helper' }] };
let keyText = '';
let sessions = 0;

const ports: Readonly<Record<string, Port>> = {
  emergencyStops: {
    setup: plain,
    seen: outcome,
    change: ({ client }) => client.emergency.stop({ body: { scope: 'Agent', agentName: 'helper' } }),
    before: 'completed',
    after: 'emergency-stopped',
  },
  providerBindings: {
    setup: { ...simulated, agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-4.1-mini' } }] },
    seen: (app) => sentFor(app, ({ headers }) => headers['authorization']),
    change: ({ client }) =>
      client.providerBindings.save({
        params: { tenantId: 'default', provider: 'openai' },
        body: { apiKeyConfigurationName: 'Service:ProviderKeys:other' },
      }),
    before: 'Bearer sk-test-0123456789',
    after: 'Bearer sk-other',
  },
  webhookSubscriptions: {
    setup: { ...plain, service: { WebhookSecrets: { crm: 'a secret' } } },
    async seen(app) {
      const before = await app.store.count('deliveries');
      await outcome(app);
      return (await app.store.count('deliveries')) > before ? 'told' : 'silent';
    },
    change: ({ client }) =>
      client.webhooks.save({
        params: { name: 'crm' },
        body: {
          url: 'https://hooks.invalid/',
          events: ['run.completed'],
          secretConfigurationKey: 'Service:WebhookSecrets:crm',
        },
      }),
    before: 'silent',
    after: 'told',
  },
  mcpServers: {
    setup: simulated,
    // Only a server that is known is asked whether it has the tool.
    async seen({ client }) {
      const body = { name: 'other', model: local, toolNames: ['weather_look'] };
      try {
        return (await client.agents.validate({ body })).body.messages.map(({ code }) => code).join(' ');
      } catch (error) {
        return codeOf(error);
      }
    },
    change: ({ client }) =>
      client.mcpServers.save({ params: { name: 'weather' }, body: { endpoint: 'http://127.0.0.1:1/' } }),
    before: 'tool-not-found',
    after: 'mcp-unreachable',
  },
  egressPolicies: {
    setup: { ...simulated, agents: [{ name: 'helper' }] },
    seen: outcome,
    change: ({ client }) =>
      client.egressPolicies.save({ params: { tenantId: 'default' }, body: { allowedProviders: ['openai'] } }),
    before: 'completed',
    after: 'agent-not-compilable',
  },
  agentVersions: {
    setup: { ...simulated, agents: [{ name: 'helper', model: local, instructions: 'Be brief.' }] },
    seen: (app) => sentFor(app, systemText),
    change: ({ client }) =>
      client.agents.save({
        params: { name: 'helper' },
        body: { name: 'helper', model: local, instructions: 'Be kind.' },
      }),
    before: 'Be brief.',
    after: 'Be kind.',
    unread: 'internal',
  },
  skillFingerprints: {
    setup: simulated,
    async prepare(app) {
      await save(app, skill('pdf', { description: 'Reads one.' }));
      await app.createAgent(helper);
    },
    seen: async (app) => String(await sentFor(app, systemText)).match(/Reads \w+|^[\w-]+$/)?.[0],
    change: (app) => save(app, skill('pdf', { description: 'Reads two.' })),
    before: 'Reads one',
    after: 'Reads two',
    unread: 'internal',
  },
  quotaRules: {
    setup: { ...plain, service: { Quotas: { AllowOnStoreFailure: false } } },
    seen: outcome,
    change: ({ client }) => saveQuota(client, { period: 'Daily', maxRuns: 0 }),
    before: 'completed',
    after: 'quota-exceeded',
    unread: 'store-unavailable',
  },
  approvalRules: {
    open: (t, setup) => openApprovals((more) => openApp(t, 'http', { ...more, ...setup })),
    prepare: ({ client }) => client.approvalRules.create({ body: { toolName: 'pay' } }),
    async seen(app) {
      const { done } = app as Awaited<ReturnType<typeof openApprovals>>;
      const before = done.length;
      sessions += 1;
      await runJson(app.client, 'helper', { message: calls(['pay']), sessionId: `s${sessions}` });
      return done.length > before ? 'paid' : 'asked';
    },
    async change({ client }) {
      for (const { id } of (await client.approvalRules.list({ query: {} })).body)
        await client.approvalRules.remove({ params: { ruleId: id } });
    },
    before: 'paid',
    after: 'asked',
    unread: 'asked',
  },
  apiKeys: {
    setup: plain,
    async prepare({ client }) {
      keyText = (await client.keys.create({ body: { name: 'k', scopes: ['RunsRead'] } })).body.plaintextKey;
    },
    async seen(app) {
      try {
        await (await app.clientFor(keyText)).keys.whoami({});
        return 'admitted';
      } catch (error) {
        return codeOf(error);
      }
    },
    async change({ client }) {
      for (const { id } of (await client.keys.list({})).body) await client.keys.remove({ params: { id } });
    },
    before: 'admitted',
    after: 'unauthenticated',
    unread: 'internal',
  },
};

// One that decides nothing is read only where the store is shared: `test/fleet/model-health.test.ts`.
const copies = Object.entries(instanceState).filter(([, state]) => state.kind !== 'own' && !('decides' in state));

test('every copy of the store is proved here', () => {
  assert.deepEqual(
    copies.map(([name]) => name),
    Object.keys(ports),
  );
});

for (const [name, { kind, truth }] of copies) {
  const port = ports[name];
  if (port === undefined) continue;
  const [table = assert.fail('it is a copy of a table')] = truth;
  const service = { ...port.setup?.service, ProviderKeys: { other: 'sk-other' } };
  const open = (t: TestContext, more: AppSetup = {}): Promise<TestApp> => {
    const setup = { ...port.setup, service, ...more };
    return port.open === undefined ? openApp(t, 'http', setup) : port.open(t, { service, ...more });
  };

  test(`${name}: a change is seen by the next call, and by the next process`, async (t) => {
    const app = await open(t);
    await port.prepare?.(app);
    assert.equal(await port.seen(app), port.before);
    assert.equal(await port.seen(app), port.before, 'from memory');
    await port.change(app);
    assert.equal(await port.seen(app), port.after);
    await app.close();
    const next = await open(t, { folder: app.folder, agents: [] });
    assert.equal(await port.seen(next), port.after);
  });

  if (kind === 'entries')
    test(`${name}: what cannot be read is refused, and nothing older takes its place`, async (t) => {
      const app = await open(t);
      await port.prepare?.(app);
      assert.equal(await port.seen(app), port.before);
      await port.change(app);
      const told = app.log.length;
      const giveBack = await app.store.takeAway(table);
      assert.equal(await port.seen(app), port.unread);
      assert.ok(app.log.length > told || port.unread === 'store-unavailable', 'it is not silent');
      await giveBack();
      assert.equal(await port.seen(app), port.after, 'the next call asks again');
    });
  else
    test(`${name}: a process that cannot read it does not start`, async (t) => {
      const app = await open(t);
      await port.change(app);
      await app.close();
      const giveBack = await app.store.takeAway(table);
      await assert.rejects(open(t, { folder: app.folder, agents: [] }), new RegExp(table));
      await giveBack();
      const next = await open(t, { folder: app.folder, agents: [] });
      assert.equal(await port.seen(next), port.after);
    });
}
