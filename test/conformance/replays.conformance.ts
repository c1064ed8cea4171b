import assert from 'node:assert/strict';
import { type Answer, type Api, assertProblem, type Body, unique } from './api.ts';
import { agentGone, agentInForce } from './in-force.ts';
import { rule } from './rule.ts';
import { getRun, idsOf, last, logOf, namesOf } from './run-calls.ts';

const nobody = '01890000-0000-7000-8000-000000000000';

const replay = (api: Api, runId: string, body: Record<string, unknown> = {}): Promise<Answer> =>
  api.post(`/api/runs/${runId}/replay`, body);

const replayed = async (api: Api, runId: string, body: Record<string, unknown> = {}): Promise<Body> => {
  const answer = await replay(api, runId, body);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const countOf = async (api: Api, agent: string): Promise<number> =>
  idsOf(await api.get(`/api/runs?agentName=${agent}&take=200`)).length;

rule(
  'RUN-52',
  'a replay is a new run without session, on the input of the turn alone',
  async (api) => {
    const agent = await api.agent({ instructions: 'Be first.' });
    const sessionId = unique('session');
    await api.run(agent, { message: 'say one', sessionId });
    const source = (await api.run(agent, { message: 'say two', sessionId })).body;
    await api.put(`/api/agents/${agent}`, { name: agent, model: { provider: 'demo', model: 'other' } });
    await agentInForce(api, agent, 2);
    const answer = await replay(api, source.runId);
    const { body } = answer;
    assert.deepEqual([answer.status, answer.headers.get('x-run-id')], [200, body.runId]);
    assert.deepEqual(
      [body.sourceRunId, body.toolMode, body.agentVersion, body.modelId, body.status, body.output],
      [source.runId, 'ReplayTools', 2, 'other', 'Completed', 'two'],
    );
    assert.equal(body.compareLocation, `/api/runs/${source.runId}/compare/${body.runId}`);
    assert.equal((await api.get(body.compareLocation)).body.right.replayOfRunId, source.runId);
    const run = await getRun(api, body.runId);
    assert.deepEqual([run.replayOfRunId, run.sessionId], [source.runId, null]);
    const { messages } = (await api.get(`/api/runs/${body.runId}/input`)).body;
    assert.ok(!JSON.stringify(messages).includes('say one'));
    const first = await replayed(api, source.runId, { agentVersion: 1, modelId: 'demo-2' });
    assert.deepEqual([first.agentVersion, first.modelProvider, first.modelId], [1, 'demo', 'demo-2']);
    const key = await api.withKey('Operator', ['RunsRead', 'RunsWrite']);
    const own = await replayed(key, source.runId);
    assert.deepEqual(Object.keys((await getRun(api, own.runId)).labels), ['apiKey'], 'RUN-36');
    const reader = await api.withKey('Reader', ['RunsRead', 'RunsWrite']);
    assertProblem(await replay(reader, source.runId), 403, 'insufficient-role');
    assertProblem(await replay(api.inTenant(unique('tenant')), source.runId), 404, 'run-not-found');
  },
  { shares: true },
);

rule('RUN-53', 'recorded results answer the calls; what was not recorded ends the replay', async (api) => {
  const agent = await api.agent({ toolNames: ['add', 'echo', 'broken', 'context'] });
  const source = (await api.run(agent, 'call context')).body;
  const again = await replayed(api, source.runId);
  assert.equal(again.output, source.output, 'the tool would tell of another run');
  const failed = (await api.run(agent, 'call broken')).body;
  const failure = await replayed(api, failed.runId);
  assert.equal(failure.output, failed.output);
  assert.ok(namesOf(await logOf(api, failure.runId)).includes('tool.failed'));
  const none = await replayed(api, source.runId, { toolMode: 'NoTools' });
  assert.ok(!(await logOf(api, none.runId)).some(({ event }) => event === 'tool.invoked'));
  // The log keeps at most 8192 characters of a result.
  const long = (await api.run(agent, `call echo ${JSON.stringify({ text: 'x'.repeat(9000) })}`)).body;
  const answer = await replay(api, long.runId);
  const problem = assertProblem(answer, 422, 'replay-result-missing');
  assert.equal(problem.errorType, 'replay_result_missing');
  assert.match(problem.detail, /"echo"/);
  const runId = answer.headers.get('x-run-id') ?? '';
  const { error, replayOfRunId, status } = await getRun(api, runId);
  assert.deepEqual(
    [status, error.class, error.type, replayOfRunId],
    ['Failed', 'ToolError', 'replay_result_missing', long.runId],
  );
  assert.equal(last(await logOf(api, runId)).event, 'run.failed');
});

rule('RUN-54', 'live tools are for administrators, and not where somebody would have to be asked', async (api) => {
  const agent = await api.agent({ toolNames: ['context'] });
  const source = (await api.run(agent, 'call context')).body;
  const key = await api.withKey('Operator', ['RunsRead', 'RunsWrite']);
  const refused = assertProblem(await replay(key, source.runId, { toolMode: 'LiveTools' }), 403, 'insufficient-role');
  assert.equal(refused.requiredRole, 'Admin');
  const live = await replayed(api, source.runId, { toolMode: 'LiveTools' });
  assert.notEqual(live.output, source.output, 'the tool tells of the new run');
  const audit = await api.get(`/api/audit?action=run.replay-live&entity=run:${source.runId}`);
  assert.equal(audit.status, 200, audit.text);
  assert.equal(JSON.stringify(audit.body).includes(live.runId), true, audit.text);
  const guarded = await api.agent({ toolNames: ['guarded'] });
  const asks = (await api.run(guarded, 'Hi')).body;
  const client = await api.agent({ toolNames: ['on_client'] });
  const there = (await api.run(client, 'Hi')).body;
  assertProblem(await replay(api, asks.runId, { toolMode: 'LiveTools' }), 409, 'replay-needs-approval');
  for (const toolMode of ['ReplayTools', 'NoTools', 'LiveTools'])
    assertProblem(await replay(api, there.runId, { toolMode }), 409, 'replay-client-tools');
  assert.deepEqual([await countOf(api, guarded), await countOf(api, client)], [1, 1], 'before a row');
});

rule('RUN-55', 'what cannot be replayed is refused with its reason, before a row', async (api) => {
  const agent = await api.agent();
  const { runId } = (await api.run(agent, 'Hi')).body;
  assertProblem(await replay(api, nobody), 404, 'run-not-found');
  const version = assertProblem(await replay(api, runId, { agentVersion: 7 }), 404, 'version-not-found');
  assert.equal(version.missingVersion, 7);
  const coded = (await api.run('code-agent', 'Hi')).body;
  assertProblem(await replay(api, coded.runId, { agentVersion: 1 }), 400, 'replay-not-supported');
  assertProblem(await replay(api, runId, { toolMode: 'SomeTools' }), 400, 'validation-failed');
  assertProblem(await replay(api, runId, { model: 'x' }), 400, 'validation-failed');
  const waiting = await api.post(
    `/api/agents/${agent}/run`,
    { message: 'wait' },
    { headers: { prefer: 'respond-async' } },
  );
  assertProblem(await replay(api, waiting.body.runId), 409, 'run-not-finished');
  await api.post(`/api/runs/${waiting.body.runId}/cancel`);
  await logOf(api, waiting.body.runId);
  assert.equal(await countOf(api, agent), 2);
  await api.del(`/api/agents/${agent}`);
  await agentGone(api, agent);
  assertProblem(await replay(api, runId), 404, 'agent-not-found');
});
