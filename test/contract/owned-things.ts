import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { enqueue, followToEnd, runJson, tool } from '../features/runs/run-calls.ts';
import { startServer } from '../providers/http/loopback-server.ts';
import type { AppSetup, OpenApp, TestApp } from '../support/app.ts';
import { officialServer } from '../support/mcp/mcp-server.ts';

/** Their own is called the same for both tenants, so that a save of one could reach the other. */
export const sharedName = 'both';

export interface OwnedThings {
  readonly app: TestApp;
  /** Ids of the owner by the kind that a slot takes, each with the run that it belongs to. */
  readonly ids: Readonly<Record<string, readonly string[]>>;
  readonly runId: string;
}

const model = { provider: 'demo', model: 'demo-1' };

const setup = (token: string): AppSetup => ({
  token,
  host: {
    AuthToken: token,
    Tenancy: { Enabled: true },
    A2A: { Agents: ['theirs', sharedName] },
    SkillScripts: { Register: true },
  },
  service: {
    Egress: { AllowPrivateNetworkTargets: true },
    Observability: { PersistSpans: true, SuccessSampleRatio: 1 },
    Webhooks: { AllowPrivateNetworkTargets: true, AllowInsecureHttp: true, RetryDelays: [] },
    WebhookSecrets: {
      own: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      other: { own: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    },
    TriggerSecrets: { own: 'a-secret-of-the-trigger', other: { own: 'another-secret-of-the-trigger' } },
    Skills: { Scripts: { PlatformIsolationAcknowledged: true } },
  },
  script: [
    { when: { message: 'fail' }, reply: { error: 'provider_error' } },
    { when: { message: 'pay', call: 1 }, reply: { toolCalls: [{ name: 'pay', arguments: {} }] } },
    { reply: { text: 'Done.' } },
  ],
  tools: [{ ...tool('pay', async () => 'paid'), requiresApproval: true }],
  module: {
    judges: [{ name: 'tone', judge: async () => ({ score: 80 }) }],
    dataSubjectResolver: { resolve: async ({ id }) => ({ userIds: [], sessionIds: [id], ownerIds: [] }) },
  },
});

const textFile = (text: string) => ({
  name: 'notes.txt',
  bytes: (async function* () {
    yield Buffer.from(text);
  })(),
});

/** One thing of every kind, made by the default tenant. */
export const ownedThings = async (open: OpenApp, t: TestContext, token: string): Promise<OwnedThings> => {
  const server = await officialServer(t, 'Stateless');
  // Refuses what it gets, so that deliveries can be sent again.
  const receiver = await startServer((_request, response) => response.writeHead(500).end());
  t.after(() => receiver.close());
  const app = await open(setup(token));
  const { client } = app;
  const named = { name: 'theirs' };
  const agent = { ...named, model, toolNames: ['pay'] };
  await client.agents.create({ body: agent });
  await client.agents.save({ params: named, body: { ...agent, description: 'Changed' } });
  await client.agents.create({ body: { name: sharedName, model } });
  const skill = { ...named, description: 'Secret', instructions: 'Secret' };
  await client.skills.save({ params: named, body: skill });
  await client.grants.create({ body: { skillName: 'theirs' } });
  const { runId } = await runJson(client, 'theirs', { message: 'A secret', sessionId: 'theirs' });
  await client.runs.start({ params: named, body: { message: 'fail', stream: false } }).catch(() => undefined);
  const score = (await client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } })).body;
  const file = (await client.attachments.upload({ query: { sessionId: 'theirs' }, file: textFile('A secret') })).body;
  const paused = await enqueue(client, 'theirs', { message: 'pay', sessionId: 'paused' });
  await followToEnd(client, paused);
  const [approval] = (await client.approvals.list({ query: {} })).body;
  const rule = (await client.approvalRules.create({ body: { toolName: 'wipe', agentName: 'theirs' } })).body;
  const [job] = (await client.jobs.list({ query: {} })).body;
  await client.schedules.save({ params: named, body: { handlerKey: 'acp.retention', targetName: '*' } });
  const trigger = { targetName: 'theirs', secretConfigurationKey: 'Service:TriggerSecrets:own' };
  await client.triggers.save({ params: named, body: trigger });
  await client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 9 } });
  const quota = (await client.quotas.save({ body: { period: 'Daily', maxRuns: 1000 } })).body;
  const hook = {
    url: receiver.url,
    events: ['webhook.test' as const],
    secretConfigurationKey: 'Service:WebhookSecrets:own',
  };
  // Where a delivery is looked for, its webhook is called 1.
  for (const name of ['theirs', '1']) await client.webhooks.save({ params: { name }, body: hook });
  const delivery = (await client.webhooks.test({ params: { name: '1' } })).body;
  for (const name of ['theirs', '1'])
    await client.mcpServers.save({ params: { name }, body: { endpoint: server.endpoint } });
  await client.mcpServers.refresh({ query: {} });
  const key = (await client.keys.create({ body: { name: 'theirs', scopes: ['RunsRead'] } })).body.record;
  const said = { model: 'theirs', input: 'Secret' };
  await client.responses.create({ body: { ...said, conversation: 'talk-of-theirs' } });
  // Where an item is looked for, its conversation is called 1.
  const response = (await client.responses.create({ body: { ...said, conversation: '1' } })).body;
  const items = (await client.conversations.items({ params: { conversationId: '1' } })).body.data;
  const [entry] = (await client.audit.list({ query: {} })).body;
  const ids = {
    agents: ['theirs'],
    sessions: ['theirs'],
    runs: [runId, paused],
    scores: [score.id],
    skills: ['theirs'],
    attachments: [file.id],
    approvals: [approval?.id ?? assert.fail('no approval')],
    'approvals/rules': [rule.id],
    jobs: [job?.id ?? assert.fail('no job')],
    schedules: ['theirs'],
    triggers: ['theirs'],
    quotas: [quota.id],
    webhooks: ['theirs'],
    deliveries: [(delivery as { readonly deliveryId?: string }).deliveryId ?? assert.fail(JSON.stringify(delivery))],
    'mcp-servers': ['theirs'],
    'api-keys': [key.id],
    entities: ['agent:theirs'],
    audit: [entry?.id ?? assert.fail('no entry')],
    'data-subjects': ['theirs'],
    responses: [response?.id ?? assert.fail('no response')],
    conversations: ['talk-of-theirs'],
    items: [items[0]?.id ?? assert.fail('no item')],
  };
  return { app, ids, runId };
};
