import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { eventually } from './eventually.ts';
import { agentGone } from './in-force.ts';
import { rule } from './rule.ts';
import { cancel, ended, enqueue, getRun, idsOf, open } from './run-calls.ts';

const show = async (api: Api, id: string): Promise<Body> => {
  const answer = await api.get(`/api/jobs/${id}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

/** The job once it has ended; its run may close a moment before. */
const endedJob = (api: Api, id: string): Promise<Body> =>
  eventually('the job has ended', async () => {
    const { job } = await show(api, id);
    return job.completedAt === null ? null : job;
  });

rule('JOB-20', 'jobs are listed newest first; filters combine, paging is clamped', async (all) => {
  const api = all.inTenant(unique('tenant'));
  const agent = await api.agent();
  const lane = unique('lane');
  const ids = [await enqueue(api, agent, { message: 'Hi' }), await enqueue(api, agent, { message: 'Hi', lane })];
  for (const id of ids) await endedJob(api, id);
  const list = async (query: string): Promise<string[]> => {
    const answer = await api.get(`/api/jobs?${query}`);
    assert.equal(answer.status, 200, answer.text);
    return idsOf(answer);
  };
  const [older, newer] = ids;
  assert.deepEqual(await list(''), [newer, older]);
  assert.deepEqual(await list('take=999999&skip=-1'), [newer, older]);
  assert.deepEqual(await list('take=0'), [newer]);
  assert.deepEqual(await list('skip=1'), [older]);
  assert.deepEqual(await list(`lane=${lane}&status=Completed&handlerKey=acp.agent-run`), [newer]);
  assert.deepEqual(await list(`lane=${lane}&status=Failed`), []);
  for (const query of ['lane=unknown', 'handlerKey=unknown', `scheduleId=${older}`])
    assert.deepEqual(await list(query), []);
  assertProblem(await api.get('/api/jobs?status=Lost'), 400, 'validation-failed');
  assertProblem(await api.get('/api/jobs?scheduleId=x'), 400, 'validation-failed');
});

rule(
  'JOB-21 JOB-22 JOB-26',
  'the job of a queued run has its id, no items, and shows nothing of its messages',
  async (api) => {
    const agent = await api.agent();
    const runId = await enqueue(api, agent, { message: 'say a secret' });
    const job = await endedJob(api, runId);
    assert.deepEqual(
      [job.id, job.handlerKey, job.targetName, job.status, job.payload, job.scheduleId, job.attempt, job.errorCode],
      [runId, 'acp.agent-run', agent, 'Completed', null, null, 1, null],
    );
    const { items } = await show(api, runId);
    assert.deepEqual([items, job.totalItems, job.doneItems, job.failedItems], [[], 0, 0, 0]);
    const unknown = '0190b6a2-0000-7000-8000-000000000000';
    assertProblem(await api.get(`/api/jobs/${unknown}`), 404, 'not-found');
    assertProblem(await api.get('/api/jobs/x'), 400, 'validation-failed');
    assertProblem(await api.inTenant(unique('tenant')).get(`/api/jobs/${runId}`), 404, 'not-found');
  },
);

rule(
  'JOB-23 JOB-24 JOB-26',
  'a job is cancelled with its run, whether it waits or executes; an ended one is not',
  async (api) => {
    const agent = await api.agent();
    const sessionId = unique('session');
    const holder = await open(api, agent, { message: 'wait', sessionId });
    const runId = await enqueue(api, agent, { message: 'later', sessionId, concurrency: 'Enqueue' });
    const executing = await enqueue(api, agent, { message: 'wait' });
    await eventually('the run executes', async () => (await getRun(api, executing)).status !== 'Queued');
    for (const id of [runId, executing]) {
      assert.equal((await api.post(`/api/jobs/${id}/cancel`)).status, 204);
      const run = await ended(api, id);
      assert.deepEqual([run.status, run.error.class], ['Canceled', 'Canceled']);
      assert.equal((await endedJob(api, id)).status, 'Canceled');
      assertProblem(await api.post(`/api/jobs/${id}/cancel`), 409, 'job-not-cancelable');
    }
    await cancel(api, holder.runId);
    assert.equal((await ended(api, holder.runId)).status, 'Canceled');
  },
);

rule('JOB-36 JOB-38', 'a job that fails says why in words of the service', async (api) => {
  const agent = await api.agent();
  const sessionId = unique('session');
  const holder = await open(api, agent, { message: 'wait', sessionId });
  const runId = await enqueue(api, agent, { message: 'Hi', sessionId, concurrency: 'Enqueue' });
  assert.equal((await api.del(`/api/agents/${agent}`)).status, 204);
  await agentGone(api, agent);
  await cancel(api, holder.runId);
  const job = await endedJob(api, runId);
  assert.deepEqual([job.status, job.errorCode, job.attempt], ['Failed', 'agent-not-found', job.maxAttempts]);
  assert.match(job.errorMessage, /does not exist any more/);
});
