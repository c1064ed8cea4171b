import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { operationEntries } from '../../src/core/dispatch.ts';
import { reservedActions } from '../../src/features/audit/index.ts';
import { operations } from '../../src/operations.ts';
import { decide, openApprovals, queueWaiting } from '../features/approvals/approval-world.ts';
import {
  callback,
  callbackBase,
  type ProtectedServer,
  protectedServer,
  queryOf,
} from '../features/mcp-servers/oauth-world.ts';
import { rawAgent } from '../features/remote-agents/remote-world.ts';
import { runJson } from '../features/runs/run-calls.ts';
import { save, skill } from '../features/skills/skill-bodies.ts';
import { type LoopbackServer, startServer } from '../providers/http/loopback-server.ts';
import type { TestApp } from '../support/app.ts';
import { overHttp } from '../support/app.ts';
import { trail } from '../support/audit-chain.ts';

/** Without tools, which is all that an approval needs. */
let mcpServer: LoopbackServer | null = null;
/** One that wants OAuth, as `zone`, and where a person agrees to it. */
let mcpProtected: ProtectedServer | null = null;
let consentAt = '';
const discovered = { supportedVersions: ['2026-07-28'], capabilities: {} };

const model = { provider: 'demo', model: 'demo-1' };

/** One successful call of every operation that is audited, in an order in which each finds what it needs. */
const calls: Readonly<Record<string, (app: TestApp) => Promise<unknown>>> = {
  'agents.create': ({ client }) => client.agents.create({ body: { name: 'made', model } }),
  'agents.save': ({ client }) =>
    client.agents.save({ params: { name: 'made' }, body: { name: 'made', model, description: 'Changed' } }),
  'agents.rollback': ({ client }) => client.agents.rollback({ params: { name: 'made' }, body: { version: 1 } }),
  'triggers.save': ({ client }) =>
    client.triggers.save({
      params: { name: 'ticket' },
      body: { targetName: 'made', secretConfigurationKey: 'Service:TriggerSecrets:crm' },
    }),
  'triggers.remove': ({ client }) => client.triggers.remove({ params: { name: 'ticket' } }),
  'agents.remove': ({ client }) => client.agents.remove({ params: { name: 'made' } }),
  'skills.save': (app) => save(app, skill('pdf')),
  'grants.create': ({ client }) => client.grants.create({ body: { skillName: 'pdf' } }),
  'grants.remove': ({ client }) => client.grants.remove({ params: { skillName: 'pdf' } }),
  'skills.remove': ({ client }) => client.skills.remove({ params: { name: 'pdf' } }),
  'approvalRules.create': ({ client }) => client.approvalRules.create({ body: { toolName: 'wipe' } }),
  async 'approvalRules.remove'({ client }) {
    const [rule] = (await client.approvalRules.list({ query: {} })).body;
    return client.approvalRules.remove({ params: { ruleId: rule?.id ?? '' } });
  },
  async 'approvals.decide'(app) {
    const { rows } = await queueWaiting(app, 's-1', ['pay', { amount: 5 }]);
    return decide(app.client, rows[0]?.id ?? '', false);
  },
  async 'scores.remove'({ client }) {
    const { runId } = await runJson(client, 'helper', 'Hi');
    const { body } = await client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
    return client.scores.remove({ params: { runId, scoreId: body.id } });
  },
  'providerBindings.save': ({ client }) =>
    client.providerBindings.save({
      params: { tenantId: 'default', provider: 'openai' },
      body: { apiKeyConfigurationName: 'Service:ProviderKeys:own' },
    }),
  'providerBindings.remove': ({ client }) =>
    client.providerBindings.remove({ params: { tenantId: 'default', provider: 'openai' } }),
  'egressPolicies.save': ({ client }) =>
    client.egressPolicies.save({ params: { tenantId: 'default' }, body: { allowedProviders: ['demo'] } }),
  'egressPolicies.remove': ({ client }) => client.egressPolicies.remove({ params: { tenantId: 'default' } }),
  'emergency.stop': ({ client }) => client.emergency.stop({ body: { scope: 'All' } }),
  'emergency.resume': ({ client }) => client.emergency.resume({ body: { scope: 'All' } }),
  'statistics.recalculateCosts': ({ client }) => client.statistics.recalculateCosts({}),
  'tenants.save': ({ client }) => client.tenants.save({ params: { slug: 'default' }, body: { displayName: 'Home' } }),
  'tenants.remove': ({ client }) => client.tenants.remove({ params: { slug: 'default' } }),
  async 'dataSubjects.export'({ client }) {
    const { bytes } = await client.dataSubjects.export({ params: { id: 'ada' } });
    for await (const chunk of bytes ?? []) assert.ok(chunk.byteLength > 0);
  },
  'dataSubjects.erase': ({ client }) => client.dataSubjects.erase({ params: { id: 'ada' }, query: { dryRun: false } }),
  'retention.save': ({ client }) => client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 9 } }),
  'retention.run': ({ client }) => client.retention.run({ query: { target: 'Jobs' } }),
  'retention.remove': ({ client }) => client.retention.remove({ params: { target: 'Jobs' } }),
  'schedules.save': ({ client }) =>
    client.schedules.save({ params: { name: 'nightly' }, body: { handlerKey: 'acp.retention', targetName: '*' } }),
  'schedules.remove': ({ client }) => client.schedules.remove({ params: { name: 'nightly' } }),
  'quotas.save': ({ client }) => client.quotas.save({ body: { period: 'Daily', maxRuns: 100 } }),
  async 'quotas.remove'({ client }) {
    const [quota] = (await client.quotas.list({})).body;
    return client.quotas.remove({ params: { id: quota?.id ?? '' } });
  },
  'webhooks.save': ({ client }) =>
    client.webhooks.save({
      params: { name: 'crm' },
      body: {
        url: 'https://hooks.invalid/',
        events: ['webhook.test'],
        secretConfigurationKey: 'Service:WebhookSecrets:crm',
      },
    }),
  'webhooks.remove': ({ client }) => client.webhooks.remove({ params: { name: 'crm' } }),
  async 'responses.remove'({ client }) {
    const { body } = await client.responses.create({ body: { model: 'helper', input: 'Hi' } });
    return client.responses.remove({ params: { responseId: body?.id ?? '' } });
  },
  async 'conversations.remove'({ client }) {
    const { body } = await client.conversations.create({ body: {} });
    return client.conversations.remove({ params: { conversationId: body.id } });
  },
  'mcpServers.save': ({ client }) =>
    client.mcpServers.save({ params: { name: 'weather' }, body: { endpoint: mcpServer?.url ?? '' } }),
  async 'mcpServers.approve'({ client }) {
    const { body } = await client.mcpServers.refresh({ query: {} });
    assert.equal(body.servers[0]?.state, 'Connected');
    return client.mcpServers.approve({ params: { name: 'weather' }, body: {} });
  },
  async 'mcpServers.oauthStart'({ client }) {
    consentAt = (await client.mcpServers.oauthStart({ params: { name: 'zone' } })).body.authorizationUri;
  },
  async 'mcpServers.oauthCallback'({ client }) {
    const back = await mcpProtected?.issuer.agree(consentAt);
    assert.equal((await callback(client, queryOf(back ?? new URL('about:blank')), 'zone')).status, 200);
  },
  'mcpServers.oauthDisconnect': ({ client }) => client.mcpServers.oauthDisconnect({ params: { name: 'zone' } }),
  'remoteAgents.approve': ({ client }) => client.remoteAgents.approve({ params: { name: 'partner' }, body: {} }),
  'remoteAgents.withdraw': ({ client }) => client.remoteAgents.withdraw({ params: { name: 'partner' } }),
  'mcpServers.withdraw': ({ client }) => client.mcpServers.withdraw({ params: { name: 'weather' } }),
  'mcpServers.remove': ({ client }) => client.mcpServers.remove({ params: { name: 'weather' } }),
  'keys.create': ({ client }) => client.keys.create({ body: { name: 'ci', scopes: ['RunsRead'], role: 'Reader' } }),
  async 'keys.remove'({ client }) {
    const [key] = (await client.keys.list({})).body;
    return client.keys.remove({ params: { id: key?.id ?? '' } });
  },
};

/** What the service does by itself, what commands do, and what is a part of an operation that is not audited as such. */
const besides: Readonly<Record<string, 'yes' | 'no'>> = {
  'approval.expire': 'no',
  'attachments.move': 'yes',
  'content.blocked': 'no',
  'run.replay-live': 'no',
  'script.denied': 'no',
  'script.run': 'yes',
  'webhook.disable': 'no',
};

test('AUDIT-18 AUDIT-19 AUDIT-20 the page names each action, and what becomes of a change without its entry', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/audit.md'), 'utf8');
  const named = page.split('\n').flatMap((line) => {
    const [, actions = '', entity = '', mode = ''] = line.split('|').map((cell) => cell.trim());
    return [...actions.matchAll(/`([a-z.-]+\.[a-z.-]+)`/g)].map(([, action = '']) => [
      action,
      mode.split(/[,;]/)[0],
      entity,
    ]);
  });
  const declared = operationEntries(operations).flatMap(({ operation: { audit } }) =>
    audit === undefined ? [] : [[audit.action, audit.mode === 'fail-closed' ? 'yes' : 'no'] as const],
  );
  assert.deepEqual(
    Object.fromEntries(named.map(([action, mode]) => [action, mode])),
    Object.fromEntries([...declared, ...Object.entries(besides)]),
  );
  for (const { operation } of operationEntries(operations)) {
    const { audit } = operation;
    const entity = named.find(([action]) => action === audit?.action)?.[2];
    if (audit !== undefined) assert.ok(entity?.startsWith(`\`${audit.entity}:`), `${audit.action}: ${entity}`);
  }
  for (const [action] of named) assert.ok(reservedActions.has(action ?? ''), `${action} is not kept from modules`);
});

overHttp(
  'AUDIT-7 AUDIT-20 a successful call writes the entry that its operation declares, and no other',
  async (open, t) => {
    const partner = await rawAgent(t, () => ({}));
    const app = await openApprovals(open, {
      service: {
        Egress: { AllowPrivateNetworkTargets: true },
        Mcp: { OAuthCallbackBaseUri: callbackBase },
        Providers: { OpenAI: { ApiKey: 'sk-test' } },
        Skills: { Scripts: { PlatformIsolationAcknowledged: true } },
      },
      host: { SkillScripts: { Register: true }, RemoteAgents: { partner: { CardUrl: partner.cardUrl } } },
      module: { dataSubjectResolver: { resolve: async () => null } },
    });
    const server = await startServer((request, response) => {
      const { id } = JSON.parse(request.body) as { readonly id: number };
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: discovered }));
    });
    mcpServer = server;
    mcpProtected = await protectedServer(t);
    await app.client.mcpServers.save({
      params: { name: 'zone' },
      body: { endpoint: mcpProtected.endpoint, oauthEnabled: true },
    });
    t.after(() => server.close());
    const audited = new Map(
      operationEntries(operations).flatMap(({ id, operation }) =>
        operation.audit === undefined ? [] : [[id, operation.audit.action]],
      ),
    );
    assert.deepEqual(Object.keys(calls).sort(), [...audited.keys()].sort(), 'every audited operation is called here');
    for (const [id, call] of Object.entries(calls))
      await t.test(`${id} writes ${audited.get(id)}`, async () => {
        const before = (await trail(app)).length;
        await call(app);
        const written = (await trail(app)).slice(before);
        assert.deepEqual(
          written.map(({ action }) => action),
          [audited.get(id)],
        );
      });
  },
);
