import assert from 'node:assert/strict';
import { assertProblem, unique } from './api.ts';
import { rule } from './rule.ts';

rule('SESS-1 SESS-2', 'the first run that names an id opens the session, for its agent alone', async (api) => {
  const [agent, other] = [await api.agent(), await api.agent()];
  const sessionId = unique('session');
  assertProblem(await api.get(`/api/sessions/${sessionId}`), 404, 'session-not-found');
  assert.equal((await api.run(agent, { message: 'Hi', sessionId })).status, 200);
  const { body } = await api.get(`/api/sessions/${sessionId}`);
  assert.deepEqual([body.id, body.agentName, body.version], [sessionId, agent, 1]);
  assertProblem(await api.run(other, { message: 'Hi', sessionId }), 409, 'session-agent-mismatch');
  assertProblem(await api.run(agent, { message: 'Hi', sessionId: 'no spaces' }), 400, 'validation-failed');
});

rule('SESS-5 SESS-8', 'a session is read by sequence, with what its next turn goes on from', async (api) => {
  const agent = await api.agent();
  const sessionId = unique('session');
  for (const message of ['say one', 'say two']) await api.run(agent, { message, sessionId });
  const { body } = await api.get(`/api/sessions/${sessionId}`);
  assert.deepEqual(
    body.messages.map((message: { sequence: number; role: string }) => [message.sequence, message.role]),
    [
      [0, 'User'],
      [1, 'Assistant'],
      [2, 'User'],
      [3, 'Assistant'],
    ],
  );
  assert.notEqual(body.state, undefined);
  assert.deepEqual(body.openRequests, []);
});

rule(
  'SESS-14 SESS-15 SESS-16',
  'a branch has the messages up to a sequence, and the parent stays as it is',
  async (api) => {
    const agent = await api.agent();
    const sessionId = unique('session');
    for (const message of ['say one', 'say two']) await api.run(agent, { message, sessionId });
    const branched = await api.post(`/api/sessions/${sessionId}/branch`, { upToSequence: 1 });
    assert.equal(branched.status, 201, branched.text);
    assert.deepEqual([branched.body.parentSessionId, branched.body.copiedItemCount], [sessionId, 2]);
    assert.match(branched.headers.get('location') ?? '', new RegExp(`/api/sessions/${branched.body.sessionId}$`));
    await api.run(agent, { message: 'say three', sessionId: branched.body.sessionId });
    assert.equal((await api.get(`/api/sessions/${branched.body.sessionId}`)).body.messages.length, 4);
    assert.equal((await api.get(`/api/sessions/${sessionId}`)).body.messages.length, 4);
    for (const upToSequence of [-1, 4, 0.5])
      assert.equal((await api.post(`/api/sessions/${sessionId}/branch`, { upToSequence })).status, 400);
    const taken = await api.post(`/api/sessions/${sessionId}/branch`, { newSessionId: sessionId });
    assertProblem(taken, 409, 'session-exists');
  },
);

rule('SESS-11', 'deleting takes the messages, keeps the runs, and a repeat is 404', async (api) => {
  const agent = await api.agent();
  const sessionId = unique('session');
  const { body: run } = await api.run(agent, { message: 'Hi', sessionId });
  assert.equal((await api.del(`/api/sessions/${sessionId}`)).status, 204);
  assertProblem(await api.del(`/api/sessions/${sessionId}`), 404, 'session-not-found');
  assert.equal((await api.get(`/api/runs/${run.runId}`)).body.sessionId, sessionId);
});

rule('SESS-7', 'the list is newest first, narrowed by agent, and its paging is clamped', async (api) => {
  const agent = await api.agent();
  const ids = [unique('session'), unique('session')];
  for (const sessionId of ids) await api.run(agent, { message: 'Hi', sessionId });
  const list = async (query: string) =>
    (await api.get(`/api/sessions?agentName=${agent}${query}`)).body.map(({ id }: { id: string }) => id);
  assert.deepEqual(await list(''), ids.toReversed());
  assert.deepEqual(await list('&skip=-1&take=999999'), ids.toReversed());
  assert.deepEqual(await list('&take=0'), [ids[1]]);
});

rule('SESS-20', 'one run at a time: a second one is refused while the first goes on', async (api) => {
  const agent = await api.agent();
  const sessionId = unique('session');
  const stop = new AbortController();
  const path = `/api/agents/${agent}/run?onDisconnect=cancel`;
  const first = await api.fetch('POST', path, { message: 'wait', sessionId }, { signal: stop.signal });
  assertProblem(await api.run(agent, { message: 'Hi', sessionId }), 409, 'session-busy');
  const second = api.run(agent, { message: 'say mine', sessionId, concurrency: 'Interrupt' });
  await first.text();
  assert.equal((await second).body.output, 'mine');
  stop.abort();
});
