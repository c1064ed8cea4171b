import assert from 'node:assert/strict';
import { forEachDurableService, forEachService, type OpenApp } from '../../support/app.ts';
import {
  callsTools,
  enqueue,
  followToEnd,
  getRun,
  listRuns,
  readEvents,
  refusal,
  runJson,
  start,
  tool,
} from '../runs/run-calls.ts';
import { branch, getSession, listSessions, makeKey, removeSession, say, token } from './session-calls.ts';

const openOwned = async (open: OpenApp, ownership: Readonly<Record<string, unknown>> = {}) => {
  const app = await open({
    host: { AuthToken: token },
    token,
    service: { SessionOwnership: { Enabled: true, ...ownership } },
    agents: [{ name: 'helper' }],
  });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const admin = await makeKey(app, 'admin', 'Admin');
  return { app, ann, ben, admin };
};

const ids = async (sessions: Promise<readonly { readonly id: string }[]>) =>
  (await sessions).map(({ id }) => id).toSorted();

forEachService('SESS-23 the owner is the key that opened the session, and never changes', async (open) => {
  const { app, ann } = await openOwned(open);
  await say(ann.client, 's');
  assert.equal((await getSession(ann.client, 's')).ownerId, `apikey:${ann.id}`);
  await say(ann.client, 's');
  assert.equal((await getSession(ann.client, 's')).ownerId, `apikey:${ann.id}`);
  const given = { message: 'Hello', sessionId: 't', ownerId: 'me' };
  assert.equal((await refusal(start(ann.client, 'helper', given))).code, 'validation-failed');
  const runId = await enqueue(ann.client, 'helper', { message: 'later', sessionId: 'queued' });
  await followToEnd(ann.client, runId);
  assert.equal((await getSession(ann.client, 'queued')).ownerId, `apikey:${ann.id}`, 'the identity at acceptance');
  assert.deepEqual(await ids(listSessions(app.client)), ['queued', 's']);
});

forEachService('SESS-24 a caller without identity opens a session only where that is allowed', async (open) => {
  const strict = await openOwned(open);
  for (const body of [{ stream: false }, {}] as const) {
    const problem = await refusal(start(strict.app.client, 'helper', { message: 'Hello', sessionId: 's', ...body }));
    assert.deepEqual(
      [problem.status, problem.code, problem.errorType],
      [403, 'session-owner-required', 'session_owner_required'],
    );
  }
  const queued = enqueue(strict.app.client, 'helper', { message: 'Hello', sessionId: 's' });
  assert.equal((await refusal(queued)).code, 'session-owner-required');
  assert.deepEqual(await listRuns(strict.app.client), [], 'a refusal leaves no run');
  await runJson(strict.app.client, 'helper', 'without a session');
  const lax = await openOwned(open, { RequireAuthenticatedOwner: false });
  await say(lax.app.client, 's');
  assert.equal((await getSession(lax.app.client, 's')).ownerId, null);
});

forEachDurableService(
  "SESS-25 another's session is unknown to read, delete and branch, and not to be run on",
  async (open) => {
    const { ann, ben } = await openOwned(open);
    await say(ann.client, 'a');
    for (let index = 0; index < 3; index += 1) await say(ben.client, `b-${index}`);
    assert.deepEqual(await ids(listSessions(ann.client)), ['a']);
    assert.deepEqual(await ids(listSessions(ann.client, { take: 1 })), ['a'], 'narrowed before paging');
    assert.deepEqual(await ids(listSessions(ann.client, { skip: 1 })), []);
    assert.deepEqual(await ids(listSessions(ann.client, { agentName: 'helper' })), ['a']);
    for (const call of [
      (id: string) => getSession(ben.client, id),
      (id: string) => removeSession(ben.client, id),
      (id: string) => branch(ben.client, id, 'mine'),
    ]) {
      const [theirs, unknown] = [await refusal(call('a')), await refusal(call('z'))];
      assert.deepEqual([theirs.status, theirs.code], [404, 'session-not-found']);
      assert.equal(theirs.detail.replace('"a"', '"z"'), unknown.detail);
    }
    for (const concurrency of ['Reject', 'Enqueue', 'Interrupt', 'Rollback'] as const) {
      const problem = await refusal(start(ben.client, 'helper', { message: 'Hi', sessionId: 'a', concurrency }));
      assert.deepEqual([problem.status, problem.code], [403, 'session-not-owned'], concurrency);
    }
    const queued = enqueue(ben.client, 'helper', { message: 'Hi', sessionId: 'a' });
    assert.equal((await refusal(queued)).code, 'session-not-owned');
    assert.equal((await getSession(ann.client, 'a')).version, 1);
    await branch(ann.client, 'a', 'a-2');
    assert.equal((await getSession(ann.client, 'a-2')).ownerId, `apikey:${ann.id}`);
    await removeSession(ann.client, 'a');
  },
);

forEachService(
  'RUN-2 ownership is told before an agent that is not there, and before a stored answer',
  async (open) => {
    const { ann, ben } = await openOwned(open);
    const headers = { 'idempotency-key': 'once' };
    const body = { message: 'Hello', sessionId: 'a' };
    const first = await start(ann.client, 'helper', body, { headers });
    const repeat = await start(ann.client, 'helper', body, { headers });
    assert.deepEqual(repeat.body, first.body);
    assert.equal((await refusal(start(ben.client, 'helper', body, { headers }))).code, 'session-not-owned');
    assert.equal((await refusal(start(ben.client, 'nobody', body))).code, 'session-not-owned');
  },
);

forEachDurableService(
  'SESS-26 a manager sees, deletes and branches all sessions, and runs on its own',
  async (open) => {
    const { app, ann, admin } = await openOwned(open);
    await say(ann.client, 'a');
    for (const manager of [admin.client, app.client]) {
      assert.equal((await getSession(manager, 'a')).ownerId, `apikey:${ann.id}`);
      assert.deepEqual(await ids(listSessions(manager)), ['a']);
      const problem = await refusal(start(manager, 'helper', { message: 'Hi', sessionId: 'a' }));
      assert.deepEqual([problem.status, problem.code], [403, 'session-not-owned']);
    }
    await branch(admin.client, 'a', 'b');
    assert.equal((await getSession(admin.client, 'b')).ownerId, `apikey:${ann.id}`, 'SESS-18 the owner of the source');
    await say(ann.client, 'b');
    await removeSession(admin.client, 'a');
    assert.deepEqual(await ids(listSessions(ann.client)), ['b']);
    await say(admin.client, 'own');
    assert.deepEqual(await ids(listSessions(ann.client)), ['b']);
  },
);

forEachService('SESS-26 ManagementRole says who is a manager', async (open) => {
  const { ann, ben } = await openOwned(open, { ManagementRole: 'Operator' });
  await say(ann.client, 'a');
  assert.deepEqual(await ids(listSessions(ben.client)), ['a']);
});

for (const refuse of [false, true])
  forEachDurableService(
    `SESS-27 sessions from before ownership, ${refuse ? 'refused' : 'usable by id'}`,
    async (open) => {
      const before = await open({ host: { AuthToken: token }, token, agents: [{ name: 'helper' }] });
      const first = await say(before.client, 'old');
      assert.equal((await getSession(before.client, 'old')).ownerId, null);
      const ann = await makeKey(before, 'ann');
      const { folder } = before;
      assert.deepEqual(await ids(listSessions(ann.client)), ['old'], 'while it is off, everybody sees everything');
      const key = (
        await before.client.keys.create({ body: { name: 'b', role: 'Operator', scopes: ['RunsRead', 'RunsWrite'] } })
      ).body.plaintextKey;
      await before.close();
      const app = await open({
        folder,
        host: { AuthToken: token },
        token,
        service: { SessionOwnership: { Enabled: true, RefuseUnownedSessions: refuse } },
      });
      const client = await app.clientFor(key);
      assert.deepEqual(await ids(listSessions(client)), []);
      assert.deepEqual(await ids(listSessions(app.client)), ['old']);
      assert.deepEqual(await listRuns(client), []);
      if (refuse) {
        assert.equal((await refusal(getSession(client, 'old'))).code, 'session-not-found');
        assert.equal((await refusal(removeSession(client, 'old'))).code, 'session-not-found');
        assert.equal((await refusal(getRun(client, first.runId))).code, 'run-not-found');
        assert.equal((await refusal(say(client, 'old'))).code, 'session-not-owned');
        await say(app.client, 'old');
      } else {
        assert.equal((await getSession(client, 'old')).id, 'old');
        assert.equal((await getRun(client, first.runId)).sessionId, 'old');
        await say(client, 'old');
        assert.equal((await getSession(client, 'old')).ownerId, null, 'use does not make an owner');
        await removeSession(client, 'old');
      }
    },
  );

forEachService("SESS-28 the runs of another's session, and another's runs without one, are not there", async (open) => {
  const app = await open({
    host: { AuthToken: token },
    token,
    service: { SessionOwnership: { Enabled: true } },
    tools: [tool('look', async () => 'seen')],
    agents: [
      { name: 'helper', toolNames: ['look'] },
      { name: 'boss', callableAgentNames: ['helper'] },
    ],
    script: [
      {
        when: { agent: 'boss', call: 1 },
        reply: { toolCalls: [{ name: 'ask_helper', arguments: { message: 'Hi' } }] },
      },
      ...callsTools('look'),
    ].slice(1),
  });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const inSession = await runJson(ann.client, 'helper', { message: 'one', sessionId: 'a' });
  const alone = await runJson(ann.client, 'helper', 'two');
  const bens = await runJson(ben.client, 'helper', 'three');
  for (const { runId } of [inSession, alone]) {
    const params = { runId };
    for (const call of [
      () => ben.client.runs.get({ params }),
      () => ben.client.runs.tree({ params }),
      () => ben.client.runs.tools({ params }),
      () => ben.client.runs.cancel({ params }),
      () => ben.client.runs.input({ params }),
      () => ben.client.scores.list({ params }),
      () => ben.client.scores.save({ params, body: { kind: 'Binary', value: 1 } }),
      () => ben.client.runs.compare({ params: { a: runId, b: runId } }),
      () => readEvents(ben.client, runId),
    ]) {
      const problem = await refusal(call());
      assert.deepEqual([problem.status, problem.code], [404, 'run-not-found']);
    }
    assert.equal((await ann.client.runs.tools({ params })).body.length, 1);
    assert.equal((await ann.client.runs.get({ params })).status, 200);
    assert.equal((await app.client.runs.get({ params })).status, 200, 'a manager sees it');
    assert.equal((await refusal(ann.client.runs.cancel({ params }))).code, 'run-finished');
  }
  const runIds = async (client: typeof app.client, query = {}) =>
    (await listRuns(client, query)).map(({ id }) => id).toSorted();
  assert.deepEqual(await runIds(ben.client), [bens.runId]);
  assert.deepEqual(await runIds(ben.client, { take: 1 }), [bens.runId], 'narrowed before paging');
  assert.deepEqual(await runIds(ben.client, { sessionId: 'a' }), []);
  assert.deepEqual(await runIds(ann.client), [inSession.runId, alone.runId].toSorted());
  assert.equal((await runIds(app.client)).length, 3);
});

forEachService('SESS-28 a child run belongs to the owner of its tree', async (open) => {
  const app = await open({
    host: { AuthToken: token },
    token,
    service: { SessionOwnership: { Enabled: true } },
    simulator: {
      respond: ({ body }) => {
        const messages = body['messages'] as { role: string; content: unknown }[];
        const asks = JSON.stringify(messages).includes('Ask') && messages.at(-1)?.role === 'user';
        const [called] = (body['tools'] as { function: { name: string } }[] | undefined) ?? [];
        return asks && called !== undefined
          ? { answer: { toolCalls: [{ id: 'c', name: called.function.name, arguments: '{"message":"Hi"}' }] } }
          : { answer: { text: ['Done.'] } };
      },
    },
    agents: [
      { name: 'helper', model: { provider: 'local', model: 'any' } },
      { name: 'boss', model: { provider: 'local', model: 'any' }, callableAgentNames: ['helper'] },
    ],
  });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const { runId } = await runJson(ann.client, 'boss', { message: 'Ask it', sessionId: 'a' });
  const tree = (await ann.client.runs.tree({ params: { runId } })).body;
  assert.equal(tree.length, 2);
  const child = tree.find((run) => run.parentRunId === runId)?.id ?? '';
  assert.equal((await refusal(getRun(ben.client, child))).code, 'run-not-found');
  assert.deepEqual(await listRuns(ben.client, { includeChildren: true }), []);
  assert.deepEqual(await listRuns(ben.client, { parentRunId: runId }), []);
});

forEachService('SESS-28 an estimate does not count what the caller may not see', async (open) => {
  const { app, ann, ben } = await openOwned(open);
  await say(ann.client, 'a', 'A long story. '.repeat(200));
  const tokens = async (client: typeof app.client, sessionId: string) =>
    (await client.agents.estimate({ params: { name: 'helper' }, body: { message: 'Hi', sessionId } })).body
      .promptTokens;
  assert.equal(await tokens(ben.client, 'a'), await tokens(ben.client, 'unknown'));
  assert.ok((await tokens(ann.client, 'a')) > (await tokens(ben.client, 'a')));
});
