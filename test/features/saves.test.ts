import assert from 'node:assert/strict';
import { forEachDurableService, forEachService, type TestApp } from '../support/app.ts';
import { trail } from '../support/audit-chain.ts';
import { refusal, runJson } from './runs/run-calls.ts';

interface Query {
  readonly dryRun?: boolean;
  readonly expectedUpdatedAt?: string;
}

interface Saved {
  readonly what: string;
  /** Saves the first or the second content of it; wrong: what is refused. */
  save(
    app: TestApp,
    content: 1 | 2 | 'wrong',
    query: Query,
  ): Promise<{ readonly body: { readonly updatedAt?: string | null } }>;
  list(app: TestApp): Promise<unknown>;
}

const labels = { owner: 'team-a' };
const name = 'one';

const saved: readonly Saved[] = [
  {
    what: 'quota',
    save: ({ client }, content, query) =>
      client.quotas.save({
        query,
        body: { period: 'Daily', labels, ...(content === 'wrong' ? {} : { maxRuns: content }) },
      }),
    list: async ({ client }) => (await client.quotas.list()).body,
  },
  {
    what: 'retention policy',
    save: ({ client }, content, query) =>
      client.retention.save({
        params: { target: content === 'wrong' ? 'Nothing' : 'Spans' },
        query,
        body: { labels, ...(content === 'wrong' ? {} : { maxAgeDays: content }) },
      }),
    list: async ({ client }) => (await client.retention.list()).body,
  },
  {
    what: 'egress policy',
    save: ({ client }, content, query) =>
      client.egressPolicies.save({
        params: { tenantId: 'default' },
        query,
        body: { labels, allowedProviders: content === 1 ? ['demo'] : content === 2 ? [] : ['nobody'] },
      }),
    list: async ({ client }) => (await client.egressPolicies.get({ params: { tenantId: 'default' } })).body,
  },
  {
    what: 'schedule',
    save: ({ client }, content, query) =>
      client.schedules.save({
        params: { name },
        query,
        body: {
          handlerKey: 'acp.retention',
          targetName: content === 'wrong' ? 'Nothing' : 'Spans',
          cron: `${content === 2 ? 2 : 1} 3 * * *`,
          labels,
        },
      }),
    list: async ({ client }) => (await client.schedules.list()).body,
  },
  {
    what: 'webhook',
    save: ({ client }, content, query) =>
      client.webhooks.save({
        params: { name },
        query,
        body: {
          url: content === 'wrong' ? 'https://10.0.0.1/' : `https://chat.example.com/${content}`,
          events: ['run.failed'],
          secretConfigurationKey: 'Service:WebhookSecrets:x',
          labels,
        },
      }),
    list: async ({ client }) => (await client.webhooks.list()).body,
  },
  {
    what: 'trigger',
    save: ({ client }, content, query) =>
      client.triggers.save({
        params: { name },
        query,
        body: {
          targetName: 'helper',
          secretConfigurationKey: content === 'wrong' ? 'Elsewhere:x' : `Service:TriggerSecrets:x${content}`,
          labels,
        },
      }),
    list: async ({ client }) => (await client.triggers.list()).body,
  },
  {
    what: 'skill',
    save: ({ client }, content, query) =>
      client.skills.save({
        params: { name },
        query,
        body: { name: content === 'wrong' ? 'other' : name, description: `About ${content}`, instructions: 'Do.' },
      }),
    list: async ({ client }) => (await client.skills.list()).body,
  },
];

const told = ({ code, detail }: Awaited<ReturnType<typeof refusal>>) => [code, detail];

for (const { what, save, list } of saved) {
  forEachService(`a dry run of a ${what} answers as saving it would, and leaves everything as it is`, async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    for (const content of [1, 2] as const) {
      const before = [await list(app), (await trail(app)).length];
      const { body: planned } = await save(app, content, { dryRun: true });
      assert.deepEqual([await list(app), (await trail(app)).length], before);
      const refused = told(await refusal(save(app, 'wrong', { dryRun: true })));
      const { body: made } = await save(app, content, {});
      // A new one gets its id as it is saved.
      const shown = (body: object) => ({ ...body, id: '', createdAt: '', updatedAt: '', fingerprint: '' });
      assert.deepEqual(shown(planned), shown(made));
      assert.deepEqual(told(await refusal(save(app, 'wrong', {}))), refused);
    }
  });

  forEachService(`a ${what} that somebody else has saved meanwhile is not saved over`, async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const { body: first } = await save(app, 1, { expectedUpdatedAt: 'none' });
    const known = String(first.updatedAt);
    assert.equal((await refusal(save(app, 2, { expectedUpdatedAt: 'none' }))).code, 'version-conflict');
    await app.clock.jump(1000);
    const { body: second } = await save(app, 2, { expectedUpdatedAt: known });
    assert.notEqual(second.updatedAt, known);
    const before = await list(app);
    for (const query of [{}, { dryRun: true }])
      assert.equal((await refusal(save(app, 1, { ...query, expectedUpdatedAt: known }))).code, 'version-conflict');
    assert.deepEqual(await list(app), before);
    assert.equal((await refusal(save(app, 1, { expectedUpdatedAt: 'yesterday' }))).code, 'validation-failed');
  });
}

forEachService(
  'RULE-9 a standing rule gets other labels by a new one in its place, and keeps them else',
  async (open) => {
    const app = await open();
    const create = (more: object, query: Query = {}) =>
      app.client.approvalRules.create({ query, body: { toolName: 'clock_now', ...more } });
    const ids = async () => (await app.client.approvalRules.list()).body.map((rule) => [rule.id, rule.labels['owner']]);
    const { body: first } = await create({ labels });
    assert.deepEqual((await create({})).body, first);
    assert.deepEqual((await create({ labels })).body, first);
    assert.equal((await create({ labels: {} }, { dryRun: true })).status, 200);
    assert.deepEqual(await ids(), [[first.id, 'team-a']]);
    const { body: second, status } = await create({ labels: { owner: 'team-b' } });
    assert.equal(status, 201);
    assert.deepEqual(await ids(), [[second.id, 'team-b']]);
    const entries = (await trail(app)).slice(-2);
    assert.deepEqual(
      entries.map(({ action, entity }) => `${action} ${entity}`),
      [`approval-rule.delete approval-rule:${first.id}`, `approval-rule.create approval-rule:${second.id}`],
    );
  },
);

forEachDurableService('neither a run nor the next start meets what was saved as a dry run', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const query = { dryRun: true };
  const body = { url: 'https://chat.example.com/', secretConfigurationKey: 'Service:WebhookSecrets:x' };
  await app.client.webhooks.save({ params: { name }, query, body: { ...body, events: ['run.completed'] } });
  await app.client.egressPolicies.save({ params: { tenantId: 'default' }, query, body: { allowedProviders: [] } });
  await app.client.quotas.save({ query, body: { period: 'Daily', maxRuns: 0 } });
  assert.equal((await runJson(app.client, 'helper', 'Hi')).status, 'Completed');
  assert.equal(await app.store.count('deliveries'), 0);
  await app.close();
  const { client } = await open({ folder: app.folder });
  assert.equal((await client.egressPolicies.get({ params: { tenantId: 'default' } })).body.allowedProviders, null);
  assert.deepEqual([(await client.webhooks.list()).body, (await client.quotas.list()).body], [[], []]);
});
