import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { rule } from './rule.ts';
import { cancel, open } from './run-calls.ts';

const nobody = '0190b6a2-0000-7000-8000-000000000000';
const nothing = { scores: [], failures: [] };

const judge = (api: Api, runId: string) => api.post(`/api/runs/${runId}/judge`);

const judged = async (api: Api, runId: string): Promise<Body> => {
  const answer = await judge(api, runId);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const ran = async (api: Api, agent: string, message: string): Promise<string> =>
  (await api.run(agent, message)).body.runId;

rule('RUN-47 EVAL-33 EVAL-36', 'judges score a run with what they may know of it, again and again', async (api) => {
  const agent = await api.agent({ toolNames: ['add', 'echo'] });
  const runId = await ran(api, agent, 'call two');
  const { scores, failures } = await judged(api, runId);
  assert.deepEqual(failures, []);
  const expected = (name: string, value: number) => ({ runId, name, value, kind: 'Numeric', messageId: null });
  assert.deepEqual(
    scores.map(({ name, value, kind, messageId, runId: of }: Body) => ({ runId: of, name, value, kind, messageId })),
    [expected('told', 50), expected('told.length', scores[1].value), expected('input', 7)],
  );
  for (const { name, source, author } of scores) {
    const own = `judge:${name.split('.')[0]}`;
    assert.deepEqual([source, author], [own, own]);
  }
  const told = JSON.parse(scores[0].comment);
  assert.deepEqual(Object.keys(told).sort(), ['input', 'output', 'tenantId', 'toolNames']);
  assert.deepEqual([told.input, told.toolNames], ['call two', ['add', 'echo']]);
  assert.equal(told.output.length, scores[1].value);
  const again = await judged(api, runId);
  const ids = (all: Body[]) => all.map(({ id }) => id).sort();
  assert.deepEqual(ids(again.scores), ids(scores));
  const stored = (await api.get(`/api/runs/${runId}/feedback`)).body;
  assert.deepEqual(ids(stored), ids(scores));
});

rule('RUN-47 EVAL-34 EVAL-35', 'a judge that fails is an entry, and the others go on', async (api) => {
  const agent = await api.agent();
  const failures = {
    slow: ['judge-timeout', true],
    'too much': ['judge-score-out-of-range', false],
    broken: ['RangeError', true],
  };
  for (const [message, [errorType, isRetryable]] of Object.entries(failures)) {
    const answer = await judge(api, await ran(api, agent, message));
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body.failures, [{ judgeName: 'input', errorType, isRetryable }]);
    assert.deepEqual(
      answer.body.scores.map(({ name }: Body) => name),
      ['told', 'told.length'],
    );
    assert.ok(!answer.text.includes('a secret of the judge'));
  }
  const silent = await judged(api, await ran(api, agent, 'no verdict'));
  assert.deepEqual([silent.scores.length, silent.failures], [2, []]);
  const { scores } = await judged(api, await ran(api, agent, 'Hi'));
  assert.equal(scores.find(({ name }: Body) => name === 'input').comment.length, 4000);
});

rule('RUN-47 EVAL-43', 'what cannot be judged has empty lists, and an unknown run is 404', async (api) => {
  const agent = await api.agent();
  const waiting = await open(api, agent, { message: 'wait' });
  assert.deepEqual(await judged(api, waiting.runId), nothing, 'in progress');
  await cancel(api, waiting.runId);
  const failed = (await api.run(agent, 'fail')).headers.get('x-run-id') ?? '';
  assert.deepEqual(await judged(api, failed), nothing, 'no output');
  assertProblem(await judge(api, nobody), 404, 'run-not-found');
  const runId = await ran(api, agent, 'Hi');
  assertProblem(await judge(api.inTenant(unique('tenant')), runId), 404, 'run-not-found');
  assertProblem(await judge(await api.withKey('Reader', ['RunsWrite']), runId), 403, 'insufficient-role');
});

rule(
  'RUN-47 EVAL-43',
  'without a recorded input there is nothing to judge',
  async (api) => {
    assert.deepEqual(await judged(api, await ran(api, await api.agent(), 'Hi')), nothing);
  },
  { settings: { 'Service:RunRecording:RecordRunInput': 'false' } },
);
