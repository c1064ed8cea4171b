import assert from 'node:assert/strict';
import { type ApiKeyScope, apiKeyScopes, type Role, roleAtLeast, roles } from '../../src/contract/authority.ts';
import { type OperationEntry, operationEntries } from '../../src/core/dispatch.ts';
import { newId } from '../../src/core/ids.ts';
import { operations } from '../../src/operations.ts';
import { overHttp } from '../support/app.ts';

const entries = operationEntries(operations).filter(({ operation }) => operation.role !== null);
const token = 'shared-token-of-the-contract-suite';

const unknownId = newId();

/** Parameters that fit the operation's schema and name nothing that exists. */
const unknownParams = ({ operation }: OperationEntry): Record<string, string> => {
  const properties = (operation.params?.properties ?? {}) as Record<string, { type?: string; format?: string }>;
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type, format }]) => [
      name,
      format === 'uuid' ? unknownId : type === 'integer' ? '1' : 'nothing',
    ]),
  );
};

const bodies: Readonly<Record<string, unknown>> = {
  'agents.create': { name: 'made', model: { provider: 'demo', model: 'demo-1' } },
  'agents.validate': { name: 'made', model: { provider: 'demo', model: 'demo-1' } },
  'agents.rollback': { version: 1 },
  'agents.estimate': { message: 'Hello' },
  'scores.save': { kind: 'Stars', value: 3 },
  'runs.start': { message: 'Hello', stream: false },
  'replays.create': {},
  'sessions.branch': {},
  'skills.save': { name: 'nobody', description: 'Does nothing.', instructions: 'Do nothing.' },
  'approvals.decide': { approved: true },
  'tenants.save': {},
  'retention.save': {},
  'schedules.save': { handlerKey: 'acp.retention', targetName: '*' },
  'schedules.trigger': {},
  'policyTests.run': { guard: { DeniedTerms: ['x'] } },
  'approvalRules.create': { toolName: 'pay' },
  'providerBindings.save': { apiKeyConfigurationName: 'Service:ProviderKeys:own' },
  'egressPolicies.save': { allowedProviders: [] },
  'webhooks.save': {
    url: 'https://hooks.invalid/',
    events: ['webhook.test'],
    secretConfigurationKey: 'Service:WebhookSecrets:crm',
  },
  'mcpServers.save': { endpoint: 'https://mcp.invalid/' },
  'mcpServers.approve': {},
  'mcpServers.prompt': {},
  'remoteAgents.approve': {},
  'webhooks.retryRange': { from: '2026-01-01T00:00:00Z' },
  'emergency.stop': { scope: 'Agent', agentName: 'nobody' },
  'emergency.resume': { scope: 'Agent', agentName: 'nobody' },
  'triggers.save': { targetName: 'nobody', secretConfigurationKey: 'Service:TriggerSecrets:made' },
  'chatCompletions.create': { model: 'nobody', messages: [{ role: 'user', content: 'Hello' }] },
  'embeddings.create': { model: 'nobody', input: 'Hello' },
  'responses.create': { model: 'nobody', input: 'Hello' },
  'conversations.create': {},
  'conversations.update': { metadata: {} },
  'keys.create': { name: 'made', scopes: ['RunsRead'], role: 'Reader' },
};

/** What an operation asks for behind its path. */
const queries: Readonly<Record<string, string>> = { 'mcpServers.readResource': '?uri=file:///nothing' };

/** Operations to which no id is unknown: they make what is not there, or answer without it. */
const upserts: ReadonlySet<string> = new Set([
  'skills.save',
  'audit.get',
  'tenants.save',
  'triggers.save',
  'retention.get',
  'retention.save',
  'retention.remove',
  'webhooks.save',
  'mcpServers.save',
  'schedules.save',
  'egressPolicies.save',
  'egressPolicies.get',
  'providerBindings.list',
  'dataSubjects.export',
  'dataSubjects.erase',
]);

/** A body that fits; the one of a save has to repeat the name of its path. */
const bodyFor = (id: string, params: Readonly<Record<string, string>>): unknown =>
  id === 'agents.save' ? { name: params['name'], model: { provider: 'demo', model: 'demo-1' } } : bodies[id];

const call = (
  url: string,
  entry: OperationEntry,
  credential: string | null,
  overrides: { body?: string; params?: Record<string, string> } = {},
) => {
  const { operation } = entry;
  const params = { ...unknownParams(entry), ...overrides.params };
  const path = operation.path.replace(/\{(\w+)\}/g, (_braces, name: string) => params[name] ?? '');
  const body = overrides.body ?? (operation.body === undefined ? undefined : JSON.stringify(bodyFor(entry.id, params)));
  return fetch(url + path + (queries[entry.id] ?? ''), {
    method: operation.method,
    headers: {
      ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
  });
};

interface Refusal {
  readonly code: string;
  readonly [member: string]: unknown;
}

/** Of a `google.rpc.Status`, by its number. */
const rpcCodes: Readonly<Record<number, string>> = { 16: 'unauthenticated' };

/** What an error says, in the envelope of its operation; OAI-1: that of /v1 has the code of a problem in snake case. */
const problemOf = async ({ operation }: OperationEntry, response: Response): Promise<Refusal> => {
  if (operation.envelope === 'Otlp') {
    const status = (await response.json()) as { readonly code: number; readonly message: string };
    assert.deepEqual(Object.keys(status), ['code', 'message']);
    const code = /the (role|scope) /.exec(status.message)?.[1];
    return { ...status, code: code === undefined ? (rpcCodes[status.code] ?? '') : `insufficient-${code}` };
  }
  if (operation.envelope !== 'OpenAi') {
    assert.equal(response.headers.get('content-type'), 'application/problem+json');
    return (await response.json()) as Refusal;
  }
  assert.equal(response.headers.get('content-type'), 'application/json');
  const body = (await response.json()) as { error: Refusal };
  assert.deepEqual(Object.keys(body), ['error']);
  assert.deepEqual(Object.keys(body.error).sort(), ['code', 'message', 'param', 'type']);
  assert.match(body.error.code, /^[a-z]+(_[a-z]+)*$/);
  return { ...body.error, code: body.error.code.replaceAll('_', '-') };
};

overHttp('SEC-12 SEC-19 authority of every operation', async (open, t) => {
  // Doors of other protocols are there once an agent is named for them.
  const door = { Agents: ['helper'] };
  const app = await open({
    host: { AuthToken: token, A2A: door, McpServer: door, Traces: { Enabled: true } },
    token,
    agents: [{ name: 'helper' }],
  });
  const keys = new Map<string, string>();

  const makeKey = async (name: string, role: Role, scopes: readonly ApiKeyScope[]): Promise<void> => {
    const { body } = await app.client.keys.create({ body: { name, role, scopes: [...scopes] } });
    keys.set(name, body.plaintextKey);
  };
  const key = (name: string): string => keys.get(name) ?? assert.fail(`no key ${name}`);

  for (const role of roles) await makeKey(role, role, apiKeyScopes);
  for (const scope of apiKeyScopes)
    await makeKey(
      `without ${scope}`,
      'Admin',
      apiKeyScopes.filter((other) => other !== scope),
    );

  for (const entry of entries) {
    const { id, operation } = entry;
    const { role, scope } = operation;
    if (role === null || scope === null) continue;

    await t.test(`SEC-12 ${id}: no credential and a bad one get the same 401`, async () => {
      const without = await call(app.url, entry, null);
      const bad = await call(app.url, entry, 'wrong');
      for (const response of [without, bad]) {
        assert.equal(response.status, 401);
        assert.equal(response.headers.get('www-authenticate'), 'Bearer');
      }
      const [first, second] = [await problemOf(entry, without), await problemOf(entry, bad)];
      assert.deepEqual({ ...first, requestId: '' }, { ...second, requestId: '' });
      assert.equal(first.code, 'unauthenticated');
    });

    await t.test(`SEC-19 ${id}: a role below ${role} and a missing ${scope} are 403`, async () => {
      for (const low of roles.filter((candidate) => !roleAtLeast(candidate, role))) {
        const response = await call(app.url, entry, key(low));
        assert.equal(response.status, 403);
        assert.equal((await problemOf(entry, response)).code, 'insufficient-role');
      }
      for (const needed of [scope].flat()) {
        const response = await call(app.url, entry, key(`without ${needed}`));
        assert.equal(response.status, 403);
        assert.equal((await problemOf(entry, response)).code, 'insufficient-scope');
      }
    });

    await t.test(`SEC-7 ${id}: role ${role} with every scope passes the check`, async () => {
      const response = await call(app.url, entry, key(role));
      assert.ok(![401, 403].includes(response.status), `${response.status}`);
      assert.ok(response.status < 500, `${response.status}`);
      await response.body?.cancel();
    });

    if (operation.params !== undefined && id !== 'runs.start' && !upserts.has(id))
      await t.test(`${id}: an id that is not there is 404 with a problem`, async () => {
        const response = await call(app.url, entry, token);
        assert.equal(response.status, 404);
        assert.match((await problemOf(entry, response)).code, /not-found$/);
      });

    // GRANT-1: while scripts are off the body is not even looked at.
    if (operation.body !== undefined && id !== 'grants.create')
      await t.test(`${id}: a broken body is 400 and names what is wrong`, async () => {
        const malformed = await call(app.url, entry, token, { body: '{"message": ' });
        assert.equal(malformed.status, 400);
        assert.equal((await problemOf(entry, malformed)).code, 'malformed-json');
        const wrong = await call(app.url, entry, token, { body: '[]' });
        assert.equal(wrong.status, 400);
        assert.equal((await problemOf(entry, wrong)).code, 'validation-failed');
      });
  }
});

overHttp('SEC-25 another tenant gets 404 for every id, with the body of an unknown one', async (open) => {
  const app = await open({
    host: { AuthToken: token, Tenancy: { Enabled: true, AllowHeaderResolution: true } },
    token,
    agents: [{ name: 'mine' }],
  });
  const reply = await app.client.runs.start({
    params: { name: 'mine' },
    body: { message: 'Hello', sessionId: 'mine', stream: false },
  });
  assert.equal(reply.status, 200);
  const runId = String(reply.headers['x-run-id']);
  const owned = await app.client.keys.create({ body: { name: 'mine', scopes: ['RunsRead'] } });
  const made = await fetch(`${app.url}/api/api-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'x-service-tenant': 'other', 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'theirs', scopes: apiKeyScopes }),
  });
  const { plaintextKey } = (await made.json()) as { plaintextKey: string };
  assert.match(plaintextKey, /^acp_other_/);

  const { body: score } = await app.client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
  const { body: response } = await app.client.responses.create({
    body: { model: 'mine', input: 'Hello', conversation: 'talk' },
  });
  const openAi = { model: 'mine', responseId: response?.id ?? '', conversationId: 'talk' };
  const mine = { ...openAi, name: 'mine', runId, sessionId: 'mine', id: owned.body.record.id, scoreId: score.id };
  const ofEntry: Record<string, Record<string, string>> = { 'runs.compare': { a: runId, b: runId } };
  for (const entry of entries.filter(({ id, operation }) => operation.params !== undefined && !upserts.has(id))) {
    const theirs = await call(app.url, entry, plaintextKey, { params: { ...mine, ...ofEntry[entry.id] } });
    const unknown = await call(app.url, entry, plaintextKey, { params: {} });
    assert.equal(theirs.status, 404, entry.id);
    const [first, second] = [await problemOf(entry, theirs), await problemOf(entry, unknown)];
    assert.deepEqual(Object.keys(first), Object.keys(second), entry.id);
    assert.equal(first.code, second.code, entry.id);
  }
  for (const path of ['/api/agents', '/api/runs', '/api/sessions', '/api/api-keys']) {
    const list = (await (
      await fetch(app.url + path, { headers: { authorization: `Bearer ${plaintextKey}` } })
    ).json()) as { name?: string }[];
    assert.deepEqual(
      list.filter(({ name }) => name !== 'theirs'),
      [],
      path,
    );
  }
});
