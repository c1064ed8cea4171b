import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.ts';
import { type Api, assertProblem, type Body, errorPaths, unique } from './api.ts';
import { rule } from './rule.ts';
import { getRun, idsOf } from './run-calls.ts';

const sweep = { handlerKey: 'acp.retention', targetName: '*' };
const pathOf = (name: string): string => `/api/schedules/${name}`;
const unknownFile = { message: 'Read this', attachmentIds: ['0190b6a2-0000-7000-8000-000000000000'] };

const saved = async (api: Api, name: string, body: Body): Promise<Body> => {
  const answer = await api.put(pathOf(name), body);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const triggered = async (api: Api, name: string, body?: Body): Promise<Body> => {
  const answer = await api.post(`${pathOf(name)}/trigger`, body);
  assert.equal(answer.status, 200, answer.text);
  assert.ok(answer.headers.get('location')?.endsWith(`/api/jobs/${answer.body.id}`));
  return answer.body;
};

/** The job with its items once it has ended. */
const ended = (api: Api, id: string): Promise<Body> =>
  eventually('the job has ended', async () => {
    const { body } = await api.get(`/api/jobs/${id}`);
    return body.job.completedAt === null ? null : body;
  });

const batch = async (api: Api, payload: unknown): Promise<{ name: string; agent: string; id: string }> => {
  const agent = await api.agent();
  const name = unique('schedule');
  const { id } = await saved(api, name, { handlerKey: 'acp.agent-batch', targetName: agent, payload });
  return { name, agent, id };
};

rule('JOB-1 JOB-2 JOB-3 JOB-14 JOB-18', 'schedules are saved whole, listed by name, shown and deleted', async (all) => {
  const api = all.inTenant(unique('tenant'));
  assert.deepEqual((await api.get('/api/schedules')).body, []);
  const first = await saved(api, 'morning', { ...sweep, cron: '0 7 * * *', timeZone: 'Europe/Berlin', lane: 'slow' });
  assert.ok(Date.parse(first.nextRunAt) > Date.now());
  assert.deepEqual((await api.get(pathOf('morning'))).body, first);
  const off = await saved(api, 'evening', { ...sweep, cron: '0 7 * * *', enabled: false });
  assert.equal(off.nextRunAt, null);
  const replaced = await saved(api, 'morning', sweep);
  assert.deepEqual(
    [
      replaced.id,
      replaced.createdAt,
      replaced.cron,
      replaced.timeZone,
      replaced.lane,
      replaced.payload,
      replaced.nextRunAt,
    ],
    [first.id, first.createdAt, null, 'UTC', 'default', null, null],
  );
  assert.deepEqual((await api.get('/api/schedules')).body, [off, replaced]);
  assertProblem(await all.inTenant(unique('tenant')).get(pathOf('morning')), 404, 'not-found');
  assert.equal((await api.del(pathOf('morning'))).status, 204);
  assertProblem(await api.del(pathOf('morning')), 404, 'not-found');
});

rule(
  'JOB-4 JOB-5 JOB-7 JOB-8 JOB-10 JOB-11 JOB-12',
  'what cannot be a schedule is refused by its field',
  async (api) => {
    const agent = await api.agent();
    const name = unique('schedule');
    const ofAgent = { handlerKey: 'acp.agent-batch', targetName: agent, payload: 'Hi' };
    const refused = async (body: Body, field: string, path = pathOf(name)): Promise<void> => {
      const problem = assertProblem(await api.put(path, body), 400, 'validation-failed');
      assert.ok(errorPaths(problem).includes(field), `${field}: ${JSON.stringify(problem)}`);
    };
    assert.equal((await api.put(pathOf('handler-keys'), sweep)).status, 400);
    assert.equal((await api.put(pathOf('-x'), sweep)).status, 400);
    for (const handlerKey of ['acp.agent-run', 'acp.nothing']) await refused({ ...ofAgent, handlerKey }, 'handlerKey');
    await refused({ ...ofAgent, targetName: unique('nobody') }, 'targetName');
    await refused({ ...sweep, targetName: 'Nothing' }, 'targetName');
    for (const cron of ['* * * *', '0 0 * * * *', '@daily', '61 * * * *', '0 0 30 2 *'])
      await refused({ ...sweep, cron }, 'cron');
    await refused({ ...sweep, timeZone: 'Mars/Olympus' }, 'timeZone');
    for (const payload of [null, []]) await refused({ ...ofAgent, payload }, 'payload');
    await refused({ ...sweep, lane: 'x'.repeat(65) }, 'lane');
    assertProblem(await api.get(pathOf(name)), 404, 'not-found');
  },
);

rule(
  'JOB-6 JOB-13',
  'the keys that schedules may name are listed, and a lane that is not stated is the default',
  async (api) => {
    const { body } = await api.get('/api/schedules/handler-keys');
    assert.deepEqual(body, body.toSorted());
    for (const key of ['acp.agent-batch', 'acp.retention']) assert.ok(body.includes(key), key);
    for (const key of ['acp.agent-run', 'acp.approval-resume', 'acp.run-continuation'])
      assert.ok(!body.includes(key), key);
    const name = unique('schedule');
    assert.equal((await saved(api, name, { ...sweep, lane: '' })).lane, 'default');
    assert.equal((await saved(api, name, { ...sweep, lane: 'own.lane' })).lane, 'own.lane');
  },
);

rule(
  'JOB-12 JOB-17 JOB-20 JOB-21 JOB-37 JOB-48',
  'a trigger queues a batch, each item of which is a run',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    const { name, agent, id } = await batch(api, ['One', { message: 'Two' }, unknownFile]);
    const queued = await triggered(api, name);
    assert.deepEqual(
      [queued.status, queued.scheduleId, queued.totalItems, queued.targetName],
      ['Pending', id, 3, agent],
    );
    assert.notEqual((await api.get(pathOf(name))).body.lastRunAt, null);
    const { job, items } = await ended(api, queued.id);
    assert.deepEqual([job.status, job.doneItems, job.failedItems, job.errorCode], ['Completed', 2, 1, null]);
    assert.deepEqual(
      items.map(({ seq, status, input }: Body) => [seq, status, input]),
      [
        [0, 'Completed', 'One'],
        [1, 'Completed', { message: 'Two' }],
        [2, 'Failed', unknownFile],
      ],
    );
    const run = await getRun(api, items[0].runId);
    assert.deepEqual([run.agentName, run.status, run.sessionId], [agent, 'Completed', null]);
    const own = await triggered(api, name, { payload: 'Alone' });
    assert.equal((await ended(api, own.id)).items.length, 1);
    assert.deepEqual(idsOf(await api.get(`/api/jobs?scheduleId=${id}`)), [own.id, queued.id]);
    assertProblem(await api.post(`${pathOf(name)}/trigger`, { payload: [] }), 400, 'validation-failed');
    assertProblem(await api.post(`${pathOf(unique('none'))}/trigger`), 404, 'not-found');
  },
);

rule('JOB-37', 'a batch of which every item fails has failed', async (api) => {
  const { name } = await batch(api, [unknownFile, unknownFile]);
  const { job } = await ended(api, (await triggered(api, name)).id);
  assert.deepEqual([job.status, job.errorCode, job.failedItems], ['Failed', 'all-items-failed', 2]);
});

rule(
  'JOB-18 JOB-23 JOB-25',
  'a cancel leaves items as they are, and a schedule that goes leaves its jobs',
  async (api) => {
    const { name } = await batch(
      api,
      Array.from({ length: 12 }, () => 'wait'),
    );
    const { id } = await triggered(api, name);
    assert.equal((await api.del(pathOf(name))).status, 204);
    await eventually('some items are at work', async () =>
      (await api.get(`/api/jobs/${id}`)).body.items.some(({ runId }: Body) => runId !== null),
    );
    assert.equal((await api.post(`/api/jobs/${id}/cancel`)).status, 204);
    const { job, items } = await ended(api, id);
    assert.equal(job.status, 'Canceled');
    const pending = items.filter(({ status }: Body) => status === 'Pending');
    assert.ok(pending.length > 0);
    assert.equal(job.doneItems + job.failedItems + pending.length, 12);
  },
);

rule('JOB-36', 'a batch whose agent is gone has failed', async (api) => {
  const { name, agent } = await batch(api, ['Hi']);
  assert.equal((await api.del(`/api/agents/${agent}`)).status, 204);
  const { job } = await eventually('no process knows the agent any more', async () => {
    const over = await ended(api, (await triggered(api, name)).id);
    return over.job.status === 'Failed' && over;
  });
  assert.deepEqual([job.errorCode, job.attempt], ['target-not-found', 1]);
});
