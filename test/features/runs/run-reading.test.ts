import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { forEachDurableService, forEachService, overHttp } from '../../support/app.ts';
import { opensRun } from './other-process.ts';
import { getRun, listRuns, post, refusal, runJson, runStream, start } from './run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

const callsChild = [
  {
    when: { tool: 'call_child' },
    reply: { text: 'The child said {{last}}', usage: { inputTokens: 7, outputTokens: 3 } },
  },
  {
    when: { message: 'delegate' },
    reply: {
      toolCalls: [
        { name: 'call_child', arguments: { message: 'one' } },
        { name: 'call_child', arguments: { message: 'two' } },
      ],
      usage: { inputTokens: 5, outputTokens: 1 },
    },
  },
  { reply: { text: 'Yes.', usage: { inputTokens: 2, outputTokens: 1 } } },
];

const family = [{ name: 'child' }, { name: 'boss', callableAgentNames: ['child'] }];

forEachService('RUN-34 the list is newest first, of roots, and paged', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1) ids.unshift((await runJson(client, 'helper', 'Hi')).runId);
  const idsOf = async (query: Parameters<typeof listRuns>[1]) => (await listRuns(client, query)).map((run) => run.id);
  assert.deepEqual(await idsOf({}), ids);
  assert.deepEqual(await idsOf({ skip: 1, take: 2 }), ids.slice(1, 3));
  assert.deepEqual(await idsOf({ skip: -7 }), ids, 'a negative skip is 0');
  assert.deepEqual(await idsOf({ take: 0 }), ids.slice(0, 1), 'take is at least 1');
  assert.deepEqual(await idsOf({ take: -3 }), ids.slice(0, 1));
  assert.deepEqual(await idsOf({ take: 100_000 }), ids, 'and at most 200, never refused');
  assert.deepEqual(await idsOf({ skip: 99 }), []);
});

forEachDurableService('RUN-34 pages hold 50 runs by default and 200 at most', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const other = app.store.open();
  for (let index = 0; index < 210; index += 1) await opensRun(other, newId());
  assert.equal((await listRuns(app.client)).length, 50);
  assert.equal((await listRuns(app.client, { take: 500 })).length, 200);
});

forEachService('RUN-35 filters are exact, and all of them count', async (open) => {
  const app = await open({
    script: [{ when: { message: 'fail' }, reply: { error: 'provider_error' } }, { reply: { text: 'Hello.' } }],
    agents: [{ name: 'helper' }, { name: 'other' }],
  });
  const first = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  await refusal(start(app.client, 'helper', { message: 'fail', sessionId: 's', stream: false }));
  const third = await runJson(app.client, 'other', 'Hi');
  const found = async (query: Parameters<typeof listRuns>[1]) =>
    (await listRuns(app.client, query)).map((run) => run.id);
  const [, failed = ''] = await found({});
  assert.deepEqual(await found({ agentName: 'helper' }), [failed, first.runId]);
  assert.deepEqual(await found({ agentName: 'help' }), []);
  assert.deepEqual(await found({ status: 'Failed' }), [failed]);
  assert.deepEqual(await found({ status: 'failed' as never }), [failed], 'words are compared without case');
  assert.deepEqual(await found({ sessionId: 's', status: 'Completed' }), [first.runId]);
  assert.deepEqual(await found({ errorType: 'provider_error' }), [failed]);
  assert.deepEqual(await found({ errorType: 'provider_error', agentName: 'other' }), []);
  assert.deepEqual(await found({ kind: 'Agent' }), [third.runId, failed, first.runId]);
  assert.deepEqual(await found({ kind: 'Workflow' }), []);
  assert.deepEqual(await found({ userId: 'nobody' }), []);
  for (const query of [
    { status: 'Done' },
    { kind: 'Chat' },
    { startedAfter: 'yesterday' },
    { parentRunId: 'x' },
    { take: 'x' },
  ]) {
    const problem = await refusal(listRuns(app.client, query as never));
    assert.deepEqual([problem.status, problem.code], [400, 'validation-failed'], JSON.stringify(query));
  }
  assert.equal((await listRuns(app.client, { unknown: '1' } as never)).length, 3, 'an unknown parameter is ignored');
});

forEachDurableService(
  'RUN-35 startedAfter is exclusive, and a run that has not started counts by its creation',
  async (open) => {
    const app = await open({ service: { Scheduling: { RunWorker: false } }, agents: [{ name: 'helper' }] });
    const other = app.store.open();
    await opensRun(other, newId(), { createdAt: 1000, startedAt: 5000 });
    await opensRun(other, newId(), { status: 'Queued', createdAt: 6000, startedAt: null });
    const [queued, started] = await listRuns(app.client);
    const found = async (ms: number) =>
      (await listRuns(app.client, { startedAfter: new Date(ms).toISOString() })).map((run) => run.id);
    assert.deepEqual(await found(4999), [queued?.id, started?.id]);
    assert.deepEqual(await found(5000), [queued?.id]);
    assert.deepEqual(await found(6000), []);
    assert.equal((await listRuns(app.client, { startedAfter: '1970-01-01T02:00:05+02:00' })).length, 1, 'any offset');
  },
);

forEachService('RUN-35 RUN-36 labels are found by key and value, or by key', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const scopes = ['RunsRead', 'RunsWrite'] as const;
  const ids: Record<string, string> = {};
  for (const name of ['batch', 'night:shift']) {
    const { body } = await app.client.keys.create({ body: { name, role: 'Operator', scopes: [...scopes] } });
    ids[name] = (await runJson(await app.clientFor(body.plaintextKey), 'helper', 'Hi')).runId;
  }
  await runJson(app.client, 'helper', 'Hi');
  const found = async (label: string) => (await listRuns(app.client, { label })).map((run) => run.id);
  assert.deepEqual(await found('apiKey:batch'), [ids['batch']]);
  assert.deepEqual(await found('apiKey:night:shift'), [ids['night:shift']], 'the first colon splits');
  assert.deepEqual(await found('apiKey'), [ids['night:shift'], ids['batch']]);
  for (const label of ['apiKey:', 'apikey:batch', 'other', ':batch', 'a"b', 'a.b:c', "a'b", '$', 'é\\'])
    assert.deepEqual(await found(label), [], label);
});

forEachService(
  'RUN-34 RUN-37 RUN-38 children are listed on demand, and the tree is the same from every member',
  async (open) => {
    const { client } = await open({ script: callsChild, agents: family });
    const { runId } = await runStream(client, 'boss', 'delegate');
    await runJson(client, 'child', 'alone');
    const all = await listRuns(client, { includeChildren: true });
    assert.equal(all.length, 4);
    assert.equal((await listRuns(client)).length, 2);
    const children = await listRuns(client, { parentRunId: runId });
    assert.deepEqual(
      children.map((run) => [run.agentName, run.parentRunId, run.rootRunId, run.depth]),
      [
        ['child', runId, runId, 1],
        ['child', runId, runId, 1],
      ],
    );
    const root = await getRun(client, runId);
    assert.deepEqual(await listRuns(client, { rootRunId: runId }), [...children, root]);
    assert.deepEqual([root.parentRunId, root.rootRunId, root.depth, root.childRunCount], [null, null, 0, 2]);
    for (const id of [runId, children[0]?.id ?? ''])
      assert.deepEqual((await client.runs.tree({ params: { runId: id } })).body, [root, ...children.toReversed()]);
    const { inputTokens, outputTokens, totalTokens, cachedInputTokens } = root.treeUsage ?? {};
    assert.deepEqual(
      [inputTokens, outputTokens, totalTokens, cachedInputTokens],
      [5 + 7 + 2 + 2, 1 + 3 + 1 + 1, 22, null],
    );
    assert.deepEqual([root.usage?.inputTokens, root.usage?.outputTokens], [12, 4]);
    assert.deepEqual(children[0]?.treeUsage, children[0]?.usage);
    assert.deepEqual(root.treeCost, {
      inputCost: null,
      outputCost: null,
      cachedInputCost: null,
      totalCost: null,
      currency: null,
      runsWithUnknownPricing: 3,
    });
  },
);

forEachDurableService('RUN-37 a tree is cut at 200 runs, by depth and start', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const other = app.store.open();
  const place = { agentName: 'c', parentRunId: runId, rootRunId: runId, depth: 1 };
  for (let index = 0; index < 210; index += 1)
    await opensRun(other, newId(), { ...place, createdAt: index, startedAt: 1000 - index });
  const { body } = await app.client.runs.tree({ params: { runId } });
  assert.equal(body.length, 200);
  assert.equal(body[0]?.id, runId);
  const starts = body.slice(1).map((run) => run.startedAt ?? '');
  assert.deepEqual(starts, starts.toSorted());
});

forEachService('RUN-80 a record is a summary and holds nothing of the conversation', async (open) => {
  const { client } = await open({ script: [{ reply: { text: 'xyzzy-answer' } }], agents: [{ name: 'helper' }] });
  const { runId } = await runJson(client, 'helper', 'xyzzy-question');
  const run = await getRun(client, runId);
  assert.ok(!JSON.stringify(run).includes('xyzzy'));
  assert.equal((await getRun(client, runId.toUpperCase())).id, runId, 'ids are read in any case');
});

forEachService('RUN-40 unknown runs, and runs of another tenant, are the same 404 everywhere', async (open) => {
  const { client, inTenant } = await open({});
  const elsewhere = inTenant('other');
  await elsewhere.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  const { runId } = await runStream(elsewhere, 'helper', 'Hi');
  const bodies = new Set<string>();
  for (const id of [runId, unknownId])
    for (const call of [
      () => client.runs.get({ params: { runId: id } }),
      () => client.runs.tree({ params: { runId: id } }),
      () => client.runs.tools({ params: { runId: id } }),
      () => client.runs.cancel({ params: { runId: id } }),
      () => client.runs.events({ params: { runId: id } }),
    ]) {
      const problem = await refusal(call());
      assert.deepEqual([problem.status, problem.code], [404, 'run-not-found']);
      bodies.add(problem.detail.replace(id, 'id'));
    }
  assert.equal(bodies.size, 1);
  assert.deepEqual(await listRuns(client, { rootRunId: runId }), []);
});

overHttp('RUN-34 RUN-41 reading needs RunsRead, starting and cancelling RunsWrite', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const clientWith = async (name: string, role: 'Reader' | 'Operator', scopes: ('RunsRead' | 'RunsWrite')[]) => {
    const { body } = await app.client.keys.create({ body: { name, role, scopes } });
    return app.clientFor(body.plaintextKey);
  };
  const reader = await clientWith('reader', 'Reader', ['RunsRead']);
  assert.equal((await listRuns(reader)).length, 1);
  assert.equal((await refusal(reader.runs.cancel({ params: { runId } }))).code, 'insufficient-role');
  const writer = await clientWith('writer', 'Operator', ['RunsWrite']);
  assert.equal((await refusal(getRun(writer, runId))).code, 'insufficient-scope');
  assert.equal((await runJson(writer, 'helper', 'Hi')).status, 'Completed');
});

overHttp('RUN-40 SESS-1 RUN-19 runs, sessions and keys are per tenant', async (open) => {
  const token = 'shared-token-0123456789';
  const app = await open({
    host: {
      AuthToken: token,
      Agents: [],
      Tenancy: { Enabled: true, AllowHeaderResolution: true },
    },
    token,
  });
  const as = (tenant: string) => ({ authorization: `Bearer ${token}`, 'x-service-tenant': tenant });
  const read = async (tenant: string, path: string) => {
    const answer = await fetch(`${app.url}${path}`, { headers: as(tenant) });
    return { status: answer.status, body: (await answer.json()) as unknown };
  };
  const ids: Record<string, string> = {};
  for (const tenant of ['red', 'blue']) {
    const definition = { name: 'helper', model: { provider: 'demo', model: tenant } };
    assert.equal((await post(app, '/api/agents', definition, as(tenant))).status, 201);
    const headers = { ...as(tenant), 'idempotency-key': 'k' };
    const answer = await post(app, '/api/agents/helper/run', { message: 'Hi', sessionId: 's' }, headers);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('idempotency-replayed'), null);
    ids[tenant] = answer.headers.get('x-run-id') ?? '';
  }
  assert.notEqual(ids['red'], ids['blue']);
  for (const [tenant, other] of [
    ['red', 'blue'],
    ['blue', 'red'],
  ] as const) {
    const list = (await read(tenant, '/api/runs')).body as { id: string; tenantId: string; modelId: string }[];
    assert.deepEqual(
      list.map((run) => [run.id, run.tenantId, run.modelId]),
      [[ids[tenant], tenant, tenant]],
    );
    for (const path of ['', '/tree', '/tools', '/events'])
      assert.equal((await read(tenant, `/api/runs/${ids[other]}${path}`)).status, 404);
    const cancel = await post(app, `/api/runs/${ids[other]}/cancel`, {}, as(tenant));
    assert.equal(cancel.status, 404);
  }
});

forEachService('RUN-35 ids are ids in any case: in paths, filters and bodies', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { client } = app;
  const { runId } = await runJson(client, 'helper', 'Hi');
  const upper = runId.toUpperCase();
  assert.notEqual(upper, runId);
  const ids = async (query: object) => (await client.runs.list({ query })).body.map(({ id }) => id);
  assert.deepEqual(await ids({ rootRunId: upper }), [runId]);
  assert.deepEqual(await ids({ parentRunId: upper }), []);
  assert.equal((await client.runs.get({ params: { runId: upper } })).body.id, runId);
  assert.equal((await client.runs.tree({ params: { runId: upper } })).body[0]?.id, runId);
  const compared = (await client.runs.compare({ params: { a: upper, b: runId } })).body;
  assert.equal(compared.left.runId, compared.right.runId);
  const agent = (await client.audit.list({ query: {} })).body.find(({ action }) => action === 'agent.create');
  const before = { beforeId: (agent?.id ?? '').toUpperCase() };
  assert.deepEqual((await client.audit.list({ query: before })).body, []);
});
