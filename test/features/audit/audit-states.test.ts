import assert from 'node:assert/strict';
import { ProblemError } from '../../../src/client/problem.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { calls, decide, openApprovals, pendingOf, queueWaiting } from '../approvals/approval-world.ts';
import { enqueue, followToEnd, runJson } from '../runs/run-calls.ts';
import { hashOf, save, skill } from '../skills/skill-bodies.ts';

const model = { provider: 'demo', model: 'demo-1' };

/** What a change is about: how it is read, and how it comes to be, changes and goes. */
interface Subject {
  readonly read: (app: TestApp) => Promise<unknown>;
  readonly changes: readonly ((app: TestApp) => Promise<unknown>)[];
  /** What an entry has in place of what is read, beside the masks. */
  readonly told?: (read: unknown) => unknown;
}

/** The state as it is read; null: there is none. */
const gone = async <T>(read: () => Promise<{ readonly body: T }>): Promise<T | null> => {
  try {
    return (await read()).body;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.status === 404) return null;
    throw error;
  }
};

const only = <T>(list: readonly T[]): T | null => list[0] ?? null;

const agent = (more: object) => ({ name: 'made', model, ...more });
const secretive = {
  model: { ...model, providerSettings: { 'demo.accessToken': 'hush', 'demo.maxTokens': 5 } },
};
const quota = (maxRuns: number) => (app: TestApp) => app.client.quotas.save({ body: { period: 'Daily', maxRuns } });
const binding = { params: { tenantId: 'default', provider: 'openai' } };
const policy = { params: { tenantId: 'default' } };

const subjects: Readonly<Record<string, Subject>> = {
  'agent:made': {
    read: async ({ client }) => (await gone(() => client.agents.get({ params: { name: 'made' } })))?.definition ?? null,
    changes: [
      ({ client }) => client.agents.create({ body: agent({ description: 'First' }) }),
      ({ client }) => client.agents.save({ params: { name: 'made' }, body: agent(secretive) }),
      ({ client }) => client.agents.rollback({ params: { name: 'made' }, body: { version: 1 } }),
      ({ client }) => client.agents.remove({ params: { name: 'made' } }),
    ],
    told: (read) => JSON.parse(JSON.stringify(read).replace('"hush"', '"***"')),
  },
  'skill:pdf': {
    read: ({ client }) => gone(() => client.skills.get({ params: { name: 'pdf' } })),
    changes: [
      (app) => save(app, skill('pdf', { instructions: 'one', resources: [{ name: 'r.txt', content: 'two' }] })),
      (app) => save(app, skill('pdf', { instructions: 'three', description: 'Other' })),
      ({ client }) => client.skills.remove({ params: { name: 'pdf' } }),
    ],
    told(read) {
      const { instructions, resources, ...rest } = read as {
        instructions: string;
        resources: { name: string; content: string }[];
      };
      return {
        ...rest,
        instructions: hashOf(instructions),
        resources: resources.map((resource) => ({ ...resource, content: hashOf(resource.content) })),
      };
    },
  },
  'quota:': {
    read: async ({ client }) => only((await client.quotas.list({})).body),
    changes: [
      quota(5),
      quota(6),
      async ({ client }) => client.quotas.remove({ params: { id: (await client.quotas.list({})).body[0]?.id ?? '' } }),
    ],
  },
  'tenant:default': {
    read: async ({ client }) => only((await client.tenants.list({})).body),
    changes: [
      ({ client }) => client.tenants.save({ params: { slug: 'default' }, body: { displayName: 'Home' } }),
      ({ client }) => client.tenants.save({ params: { slug: 'default' }, body: { displayName: 'House' } }),
      ({ client }) => client.tenants.remove({ params: { slug: 'default' } }),
    ],
  },
  'retention:Jobs': {
    read: ({ client }) => gone(() => client.retention.get({ params: { target: 'Jobs' } })),
    changes: [
      ({ client }) => client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 9 } }),
      ({ client }) => client.retention.save({ params: { target: 'Jobs' }, body: { maxRows: 10, enabled: false } }),
      ({ client }) => client.retention.remove({ params: { target: 'Jobs' } }),
    ],
  },
  'provider-binding:': {
    read: async ({ client }) => only((await client.providerBindings.list(policy)).body),
    changes: [
      ({ client }) =>
        client.providerBindings.save({ ...binding, body: { apiKeyConfigurationName: 'Service:ProviderKeys:own' } }),
      ({ client }) =>
        client.providerBindings.save({ ...binding, body: { apiKeyConfigurationName: 'Service:ProviderKeys:two' } }),
      ({ client }) => client.providerBindings.remove(binding),
    ],
  },
  'egress-policy:': {
    read: async ({ client }) => {
      const { body } = await client.egressPolicies.get(policy);
      return body.allowedProviders === null ? null : body;
    },
    changes: [
      ({ client }) => client.egressPolicies.save({ ...policy, body: { allowedProviders: ['demo'] } }),
      ({ client }) => client.egressPolicies.save({ ...policy, body: { allowedProviders: ['demo', 'openai'] } }),
      ({ client }) => client.egressPolicies.remove(policy),
    ],
  },
  'approval-rule:': {
    read: async ({ client }) => only((await client.approvalRules.list({ query: {} })).body),
    changes: [
      ({ client }) => client.approvalRules.create({ body: { toolName: 'wipe', agentName: 'helper' } }),
      async ({ client }) =>
        client.approvalRules.remove({
          params: { ruleId: (await client.approvalRules.list({ query: {} })).body[0]?.id ?? '' },
        }),
    ],
  },
  'apikey:': {
    read: async ({ client }) => only((await client.keys.list({})).body),
    changes: [
      ({ client }) => client.keys.create({ body: { name: 'ci', scopes: ['RunsRead'], role: 'Reader' } }),
      async ({ client }) => client.keys.remove({ params: { id: (await client.keys.list({})).body[0]?.id ?? '' } }),
    ],
  },
};

forEachDurableService('AUDIT-12 an entry has the state before and after as it is read, with masks', async (open) => {
  const app = await open({
    service: { Providers: { OpenAI: { ApiKey: 'sk-test' } }, ProviderKeys: { own: 'a', two: 'b' } },
  });
  for (const [entity, { read, changes, told = (state: unknown) => state }] of Object.entries(subjects)) {
    let before: unknown = null;
    for (const [index, change] of changes.entries()) {
      const count = (await trail(app)).length;
      await change(app);
      const after = await read(app);
      const [entry, ...more] = (await trail(app)).slice(count);
      if (entry === undefined) assert.fail(`${entity} ${index}: there is no entry`);
      assert.ok(entry.entity.startsWith(entity), `${entity} ${index}: ${entry.entity}`);
      assert.deepEqual(more, [], entity);
      const state = (value: unknown) => (value === null ? null : told(value));
      assert.deepEqual(entry.before, state(before), `${entity} ${index} before`);
      assert.deepEqual(entry.after, state(after), `${entity} ${index} after`);
      before = after;
    }
  }
});

forEachDurableService('AUDIT-12 of a decision, a score and a run no text of people is copied', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, 's-1', ['pay', { amount: 5, note: 'What only the call knows' }]);
  const id = rows[0]?.id ?? '';
  await decide(app.client, id, false, 'What only the reason knows');
  const [decision] = (await trail(app)).slice(-1);
  assert.equal(decision?.action, 'approval.decide');
  const { argumentsHash, ...told } = decision.after;
  assert.deepEqual([decision.before, told], [null, { decision: 'Rejected', toolName: 'pay' }]);
  assert.match(argumentsHash, /^[0-9a-f]{64}$/);

  const { runId } = await runJson(app.client, 'helper', 'What only the run knows');
  const comment = 'What only the score knows';
  const score = (await app.client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3, comment } })).body;
  await app.client.scores.remove({ params: { runId, scoreId: score.id } });
  const [removal] = (await trail(app)).slice(-1);
  assert.deepEqual([removal?.action, removal?.before.id, removal?.after], ['run-score.delete', score.id, null]);
  assert.doesNotMatch(JSON.stringify(await trail(app)), /What only/);
});

forEachDurableService('AUDIT-11 what a job does for a caller has that caller as actor', async (open) => {
  const app = await openApprovals(open, {
    module: {
      guards: [
        {
          name: 'words',
          inspect: async ({ text }) =>
            /stop|pay done/.test(text) ? { decision: 'Block', rule: 'word' } : { decision: 'Allow' },
        },
      ],
    },
  });
  const key = async (name: string) => {
    const { record, plaintextKey } = (
      await app.client.keys.create({ body: { name, scopes: ['RunsWrite', 'RunsRead', 'PlatformRead'] } })
    ).body;
    return { actor: `apikey:${record.id}`, client: await app.clientFor(plaintextKey) };
  };
  const [starter, decider] = [await key('starter'), await key('decider')];
  const blocked = async () =>
    (await trail(app)).filter(({ action }) => action === 'content.blocked').map(({ actor, entity }) => [actor, entity]);

  const runId = await enqueue(starter.client, 'helper', { message: 'stop' });
  await followToEnd(starter.client, runId);
  assert.deepEqual(await blocked(), [[starter.actor, `run:${runId}`]], 'a queued run');

  // The continuation goes on for whom the run was started, whoever decided.
  const source = await enqueue(starter.client, 'helper', { message: calls(['pay']), sessionId: 's-1' });
  await followToEnd(starter.client, source);
  const [row] = await pendingOf(app.client);
  const { continuationRunId } = await decide(decider.client, row?.id ?? '', true);
  await followToEnd(app.client, continuationRunId ?? '');
  assert.deepEqual((await blocked()).slice(1), [[starter.actor, `run:${continuationRunId}`]], 'a continuation');
  const decisions = (await trail(app)).filter(({ action }) => action === 'approval.decide');
  assert.deepEqual(
    decisions.map(({ actor }) => actor),
    [decider.actor],
  );
});
