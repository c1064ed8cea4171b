import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { AttributionAnswer, AttributionRequest } from '../../../src/features/modules/index.ts';
import { type AppSetup, forEachService, type OpenApp, type TestApp } from '../../support/app.ts';
import { calls, decide, openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { enqueue, followToEnd, getRun, listRuns, refusal, runJson, runStream, start, tool } from './run-calls.ts';

const sessionId = 's-1';

const keyed = async (app: Pick<TestApp, 'client' | 'clientFor'>, name: string): Promise<Client> => {
  const created = await app.client.keys.create({
    body: { name, role: 'Operator', scopes: ['RunsRead', 'RunsWrite'] },
  });
  return app.clientFor(created.body.plaintextKey);
};

const attributed = async (client: Client, runId: string) => {
  const { userId, labels } = await getRun(client, runId);
  return [userId, labels];
};

/** A resolver that books each caller on a person of the name of the key, and keeps what it was asked. */
const person = (asked: AttributionRequest[] = []) => ({
  async resolve(request: AttributionRequest): Promise<AttributionAnswer> {
    asked.push(request);
    const name = request.labels['apiKey'] ?? 'nobody';
    return { userId: `${name}@example.org`, labels: { team: 'blue', 'cost centre': '4711' } };
  },
});

const labelsOf = (apiKey: string) => ({ team: 'blue', 'cost centre': '4711', apiKey });

forEachService('RUN-36 the resolver of the host says who a run is for, however it is started', async (open) => {
  const asked: AttributionRequest[] = [];
  const app = await open({ agents: [{ name: 'helper' }], module: { attributionResolver: person(asked) } });
  const ann = await keyed(app, 'ann');
  const ids = [
    (await runJson(ann, 'helper', 'Hi')).runId,
    (await runStream(ann, 'helper', 'Hi')).runId,
    await enqueue(ann, 'helper', 'Hi'),
  ];
  const again = { headers: { 'idempotency-key': 'once' } };
  for (let time = 0; time < 2; time += 1) {
    const reply = await start(ann, 'helper', { message: 'Hi' }, again);
    ids.push((reply as { body: { runId: string } }).body.runId);
  }
  await followToEnd(app.client, ids[2] ?? '');
  for (const id of ids) assert.deepEqual(await attributed(app.client, id), ['ann@example.org', labelsOf('ann')], id);
  assert.equal(asked.length, 4, 'once for each run, and not for a repeated answer');
  const [first] = asked;
  assert.deepEqual(
    { ...first, principal: null },
    {
      tenantId: 'default',
      agentName: 'helper',
      sessionId: null,
      userId: null,
      labels: { apiKey: 'ann' },
      principal: null,
    },
  );
  assert.equal((first?.principal as { kind?: string } | undefined)?.kind, 'ApiKey');
  for (const query of [{ label: 'team:blue' }, { label: 'cost centre:4711' }, { userId: 'ann@example.org' }])
    assert.equal((await listRuns(app.client, query)).length, 4, JSON.stringify(query));
});

forEachService('RUN-36 children, replays, judges and queued attempts follow the same rule', async (open) => {
  const call = { name: 'call_child', arguments: { message: 'Go' } };
  const app = await open({
    script: [
      { when: { model: 'boss-1', tool: 'call_child' }, reply: { text: 'Done.' } },
      { when: { model: 'boss-1' }, reply: { toolCalls: [call] } },
      { reply: { text: 'Hello.' } },
    ],
    agents: [
      { name: 'child', model: { provider: 'demo', model: 'child-1' } },
      { name: 'boss', model: { provider: 'demo', model: 'boss-1' }, callableAgentNames: ['child'] },
    ],
    module: {
      attributionResolver: person(),
      judges: [{ name: 'asks', judge: async (_run, _signal, ask) => ({ score: (await ask('child', 'Hi')).length }) }],
    },
  });
  const [ann, ben] = [await keyed(app, 'ann'), await keyed(app, 'ben')];
  const { runId } = await runJson(ann, 'boss', 'Go');
  const [child] = await listRuns(app.client, { parentRunId: runId });
  assert.deepEqual(await attributed(app.client, child?.id ?? ''), ['ann@example.org', labelsOf('ann')], 'a child');
  const { body } = await ben.replays.create({ params: { runId }, body: {} });
  assert.deepEqual(await attributed(app.client, body.runId), ['ben@example.org', labelsOf('ben')], 'a replay');
  await ben.judges.score({ params: { runId } });
  const [judging] = await listRuns(app.client, { kind: 'Eval' });
  assert.deepEqual(await attributed(app.client, judging?.id ?? ''), ['ben@example.org', labelsOf('ben')], 'a judge');
});

forEachService('RUN-36 who answers does not own the run that goes on: it is its source run’s', async (open) => {
  const app = await openApprovals(open, { module: { attributionResolver: person() } });
  const [ann, ben] = [await keyed(app, 'ann'), await keyed(app, 'ben')];
  const asked = await runJson(ann, 'helper', { message: calls(['pay'], ['wipe']), sessionId });
  const approvals = asked.approvals.map(({ requestId }) => ({ requestId, approved: true }));
  const answered = await runJson(ben, 'helper', { sessionId, approvals });
  assert.deepEqual(await attributed(app.client, answered.runId), ['ann@example.org', labelsOf('ann')], 'in band');
  const next = await runJson(ben, 'helper', { message: 'Hi', sessionId });
  assert.deepEqual(await attributed(app.client, next.runId), ['ben@example.org', labelsOf('ben')], 'a new turn');

  const queued = await queueWaiting({ ...app, client: ann }, 's-2', ['pay']);
  const decided = await decide(ben, queued.rows[0]?.id ?? '', true);
  const resumed = decided.continuationRunId ?? '';
  await followToEnd(app.client, resumed);
  assert.deepEqual(await attributed(app.client, resumed), ['ann@example.org', labelsOf('ann')], 'from the mailbox');
});

forEachService('RUN-36 a client-side result continues the run for whom it was started', async (open) => {
  const app = await openApprovals(open, {
    module: { attributionResolver: person() },
    tools: [{ name: 'ask', description: 'Asks.', inputSchema: { type: 'object' }, runsOnClient: true }],
  });
  const [ann, ben] = [await keyed(app, 'ann'), await keyed(app, 'ben')];
  const paused = await runJson(ann, 'helper', { message: calls(['ask']), sessionId });
  const toolResults = paused.clientToolCalls.map(({ callId }) => ({ callId, result: 'yes' }));
  const answered = await runJson(ben, 'helper', { sessionId, toolResults });
  assert.deepEqual(await attributed(app.client, answered.runId), ['ann@example.org', labelsOf('ann')]);
});

const openWith = (open: OpenApp, answer: unknown, more: AppSetup = {}): Promise<TestApp> =>
  open({
    agents: [{ name: 'helper' }],
    ...more,
    module: { attributionResolver: { resolve: async () => answer as AttributionAnswer } },
  });

forEachService('RUN-36 what is beyond the limits is 400, names the limit, and leaves no run', async (open) => {
  let answer: unknown = null;
  const app = await open({
    agents: [{ name: 'helper' }],
    module: { attributionResolver: { resolve: async () => answer as AttributionAnswer } },
  });
  const eight = Object.fromEntries([...'abcdefgh'].map((key) => [key, '']));
  const refused: readonly [unknown, RegExp][] = [
    [{ labels: { ...eight, i: '' } }, /9 labels, and at most 8/],
    [{ labels: { ['k'.repeat(65)]: 'v' } }, /key must have 1 to 64/],
    [{ labels: { '': 'v' } }, /key must have 1 to 64/],
    [{ labels: { 'a:b': 'v' } }, /no colon/],
    [{ labels: { a: 'v'.repeat(257) } }, /"a" must be a text of at most 256/],
    [{ labels: { a: 1 } }, /"a" must be a text/],
    [{ labels: ['a'] }, /labels must be an object/],
    [{ userId: '' }, /userId must be/],
    [{ userId: 'u'.repeat(257) }, /userId must be/],
    [{ userId: 7 }, /userId must be/],
    ['ann', /must be an object/],
  ];
  const ways = [{ stream: false }, {}];
  for (const [wrong, detail] of refused) {
    answer = wrong;
    for (const way of ways) {
      const problem = await refusal(start(app.client, 'helper', { message: 'Hi', ...way }));
      assert.deepEqual([problem.status, problem.code], [400, 'attribution-invalid'], JSON.stringify(wrong));
      assert.match(problem.detail, detail);
    }
    const queued = await refusal(
      start(app.client, 'helper', { message: 'Hi' }, { headers: { prefer: 'respond-async' } }),
    );
    assert.equal(queued.code, 'attribution-invalid');
  }
  assert.deepEqual(await listRuns(app.client, {}), []);
  const allowed = { userId: 'u'.repeat(256), labels: { ...eight, a: 'v'.repeat(256) } };
  answer = allowed;
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(await attributed(app.client, runId), [allowed.userId, allowed.labels]);
});

forEachService('RUN-36 the name of the key counts as a label, and no answer replaces it', async (open) => {
  const app = await openWith(open, { labels: { apiKey: 'another', team: 'blue' } });
  const ann = await keyed(app, 'ann');
  const { runId } = await runJson(ann, 'helper', 'Hi');
  assert.deepEqual(await attributed(app.client, runId), [null, { apiKey: 'ann', team: 'blue' }]);
  const eight = await openWith(open, { labels: Object.fromEntries([...'abcdefgh'].map((key) => [key, ''])) });
  const refused = await refusal(runJson(await keyed(eight, 'ann'), 'helper', 'Hi'));
  assert.equal(refused.code, 'attribution-invalid');
  assert.equal((await runJson(eight.client, 'helper', 'Hi')).status, 'Completed', 'eight without a key are allowed');
});

forEachService('RUN-36 an answer of nothing leaves what the credential says', async (open) => {
  for (const answer of [null, {}, { labels: null }, { labels: {} }]) {
    const app = await openWith(open, answer);
    const { runId } = await runJson(await keyed(app, 'ann'), 'helper', 'Hi');
    assert.deepEqual(await attributed(app.client, runId), [null, { apiKey: 'ann' }]);
    const own = await runJson(app.client, 'helper', 'Hi');
    assert.deepEqual(await attributed(app.client, own.runId), [null, null]);
  }
});

forEachService('RUN-36 a resolver that fails refuses the run, and its words stay in the log', async (open) => {
  const app = await open({
    agents: [{ name: 'helper' }],
    tools: [tool('unused', async () => '')],
    module: {
      attributionResolver: {
        resolve: async () => {
          throw new Error('no directory');
        },
      },
    },
  });
  const problem = await refusal(runJson(app.client, 'helper', 'Hi'));
  assert.deepEqual([problem.status, problem.code], [503, 'identity-unavailable']);
  assert.ok(!JSON.stringify(problem).includes('directory'));
  assert.deepEqual(await listRuns(app.client, {}), []);
  assert.ok(app.log.some(({ message }) => message.startsWith('The attribution resolver failed')));
});
