import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { eventually } from './eventually.ts';
import { rule } from './rule.ts';

const tenant = (api: Api): Api => api.inTenant(unique('retention'));

/** The history of a sweep by hand, once it has an end for every target. */
const sweep = async (api: Api, query = '', targets = 1): Promise<Body[]> => {
  const answer = await api.post(`/api/retention/run${query}`);
  assert.equal(answer.status, 200, answer.text);
  return eventually('the sweep has ended', async () => {
    const { body } = await api.get('/api/retention/history');
    const own: Body[] = body.filter(({ jobId }: Body) => jobId === answer.body.jobId);
    return own.length >= targets && own.every(({ completedAt }) => completedAt !== null) ? own : null;
  });
};

rule('RET-1 RET-14', 'targets are named in any case, and another name is told which there are', async (api) => {
  const own = tenant(api);
  const { body } = await own.put('/api/retention/runEVENTS', { maxAgeDays: 3 });
  assert.equal(body.target, 'RunEvents');
  for (const path of ['/api/retention/Audit', '/api/retention/preview?target=Audit', '/api/retention/history?target=x'])
    assert.match(assertProblem(await own.get(path), 400, 'unknown-retention-target').detail, /RunEvents.*Runs/);
});

rule('RET-4 RET-5 RET-6 RET-7', 'a policy is created, replaced whole, and deleted once', async (api) => {
  const own = tenant(api);
  const path = '/api/retention/Jobs';
  const created = await own.put(path, { maxAgeDays: 2, archive: true });
  assert.equal(created.status, 200);
  const replaced = (await own.put(path, { maxRows: 5 })).body;
  assert.deepEqual([replaced.id, replaced.maxAgeDays, replaced.archive], [created.body.id, null, false]);
  assert.deepEqual((await own.get('/api/retention')).body, [replaced]);
  for (const body of [{ maxAgeDays: 0 }, { maxRows: 0 }, { maxAgeDays: 1.5 }])
    assertProblem(await own.put(path, body), 400, 'validation-failed');
  assert.equal((await own.del(path)).status, 204);
  assertProblem(await own.del(path), 404, 'retention-policy-not-found');
  assertProblem(await own.get(path), 404, 'retention-policy-not-found');
  const actions = (await own.get('/api/audit/retention:Jobs')).body.map(({ action }: Body) => action);
  assert.deepEqual(actions, ['retention.delete', 'retention.save', 'retention.save']);
});

rule('RET-2 RET-25', 'the preview shows what a sweep would remove, by which policy', async (api) => {
  const own = tenant(api);
  const agent = await own.agent();
  for (const message of ['one', 'two', 'three']) await own.run(agent, message);
  await own.put('/api/retention/RunInputs', { maxRows: 1 });
  await own.put('/api/retention/Jobs', { maxRows: 1, enabled: false });
  const previews = (await own.get('/api/retention/preview')).body;
  assert.deepEqual(
    previews.map(({ target, source, enabled, matchingRows, cutoff }: Body) => [
      target,
      source,
      enabled,
      matchingRows,
      cutoff,
    ]),
    [
      ['Jobs', 'Stored', false, 0, null],
      ['RunInputs', 'Stored', true, 2, null],
    ],
  );
  const [none] = (await own.get('/api/retention/preview?target=Spans')).body;
  assert.deepEqual([none.source, none.enabled, none.matchingRows], ['None', false, 0]);
});

rule('RET-9 RET-11 RET-13 RET-19 RET-23 RET-26', 'a sweep by hand removes what its tenant asked for', async (api) => {
  const [own, other] = [tenant(api), tenant(api)];
  const agent = await own.agent();
  const runs: string[] = [];
  for (const message of ['one', 'two']) runs.push((await own.run(agent, message)).body.runId);
  const foreign = await other.agent();
  for (const message of ['one', 'two']) await other.run(foreign, message);
  assertProblem(await own.post('/api/retention/run?target=RunInputs'), 404, 'retention-policy-not-found');
  await own.put('/api/retention/RunInputs', { maxRows: 1 });
  const [first] = await sweep(own, '?target=RunInputs');
  assert.deepEqual([first.deletedRows, first.archivedRows, first.trigger, first.error], [1, 0, 'Manual', null]);
  assertProblem(await own.get(`/api/runs/${runs[0]}/input`), 404, 'run-input-not-recorded');
  assert.equal((await own.get(`/api/runs/${runs[1]}/input`)).status, 200);
  assert.equal((await own.get(`/api/runs/${runs[0]}`)).status, 200);
  const [again] = await sweep(own);
  assert.deepEqual([again.target, again.deletedRows], ['RunInputs', 0]);
  assert.equal((await own.get('/api/retention/history?take=1')).body[0].id, again.id);
  assert.deepEqual((await other.get('/api/retention/history')).body, []);
});

rule('RET-15 RET-22', 'without a sink what is to be archived stays, and other targets go on', async (api) => {
  const own = tenant(api);
  const agent = await own.agent();
  for (const message of ['one', 'two']) await own.run(agent, message);
  await own.put('/api/retention/RunInputs', { maxRows: 1, archive: true });
  await own.put('/api/retention/RunEvents', { maxRows: 1 });
  const runs = await sweep(own, '', 2);
  assert.deepEqual(runs.map(({ target, error }) => [target, error]).sort(), [
    ['RunEvents', null],
    ['RunInputs', 'archive-sink-missing'],
  ]);
  assert.equal(runs.find(({ target }) => target === 'RunInputs')?.deletedRows, 0);
});

rule(
  'RET-28',
  'without a store that keeps anything there is nothing to sweep',
  async (api) => {
    const own = tenant(api);
    assert.equal((await own.put('/api/retention/Jobs', { maxAgeDays: 1 })).status, 200);
    assertProblem(await own.get('/api/retention/preview'), 501, 'persistent-store-required');
    assertProblem(await own.post('/api/retention/run'), 501, 'persistent-store-required');
  },
  { settings: { 'Service:Persistence:Provider': 'Memory' } },
);

rule(
  'SUBJ-2 SUBJ-3 SUBJ-4 SUBJ-5 SUBJ-6 SUBJ-7 SUBJ-11',
  'a person is exported, counted, erased, and gone',
  async (api) => {
    const own = tenant(api);
    const [agent, person] = [await own.agent(), unique('person')];
    await own.run(agent, { message: 'Hi', sessionId: person });
    const path = `/api/data-subjects/${person}`;
    const exported = await own.get(`${path}/export`);
    assert.equal(exported.headers.get('content-disposition'), 'attachment; filename="data-subject.json"');
    assert.equal(exported.headers.get('cache-control'), 'no-store');
    assert.deepEqual(
      [exported.body.subjectId, exported.body.sessions.length, exported.body.runs.length],
      [person, 1, 1],
    );
    assert.deepEqual(exported.body.voiceSessions, []);
    const preview = (await own.del(path)).body;
    assert.deepEqual([preview.dryRun, preview.rowsByTarget.runs], [true, 1]);
    assertProblem(await own.del(`${path}?dryRun=maybe`), 400, 'validation-failed');
    const erased = (await own.del(`${path}?dryRun=false`)).body;
    assert.deepEqual(erased, { dryRun: false, rowsByTarget: preview.rowsByTarget });
    assertProblem(await own.get(`/api/sessions/${person}`), 404, 'session-not-found');
    assertProblem(await own.get(`/api/runs/${exported.body.runs[0].id}`), 404, 'run-not-found');
    const again = (await own.del(`${path}?dryRun=false`)).body.rowsByTarget;
    assert.ok(Object.values(again).every((rows) => rows === 0));
    assertProblem(await own.del('/api/data-subjects/unresolvable'), 503, 'data-subject-resolver-failed');
  },
);
