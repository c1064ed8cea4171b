// A process of its own: it finds runs by the time in their ids, which files that move the clock ahead take along.
import assert from 'node:assert/strict';
import { forEachDurableService, forEachService, type OpenApp } from '../../support/app.ts';
import { calls, decide, openApprovals, pendingOf } from '../approvals/approval-world.ts';
import { enqueue, followToEnd, Gate, listRuns, refusal, runJson, start, waitingSetup } from '../runs/run-calls.ts';
import { makeKey, token } from './session-calls.ts';

const owned = (more: Readonly<Record<string, unknown>> = {}) => ({
  host: { AuthToken: token },
  token,
  service: { SessionOwnership: { Enabled: true, RequireAuthenticatedOwner: false }, ...more },
});
const scopes = ['RunsRead', 'RunsWrite', 'AgentsRead', 'PlatformRead'] as const;

forEachService('SESS-28 RUN-19 a stored answer is given again to its owner alone', async (open) => {
  const app = await open({ ...owned(), agents: [{ name: 'helper' }] });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const admin = await makeKey(app, 'admin', 'Admin');
  const headers = { 'idempotency-key': 'once' };
  for (const prefer of [{}, { prefer: 'respond-async' }]) {
    const options = { headers: { 'idempotency-key': `once-${Object.keys(prefer).length}`, ...prefer } };
    const first = await start(ann.client, 'helper', 'Hello', options);
    const seen = new Set([first.headers['x-run-id']]);
    // A manager sees the run, but what it asks for itself is a run of its own.
    for (const other of [ben.client, admin.client, app.client]) {
      const answer = await start(other, 'helper', 'Hello', options);
      assert.equal(answer.headers['idempotency-replayed'], undefined);
      seen.add(answer.headers['x-run-id']);
      const again = await start(other, 'helper', 'Hello', options);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assert.equal(again.headers['x-run-id'], answer.headers['x-run-id']);
    }
    assert.equal(seen.size, 4);
    const repeat = await start(ann.client, 'helper', 'Hello', options);
    assert.deepEqual([repeat.body, repeat.headers['idempotency-replayed']], [first.body, 'true']);
  }
  // Nor does the key of another say what was asked with it.
  await start(ann.client, 'helper', 'Hello', { headers });
  assert.equal((await start(ben.client, 'helper', 'Something else', { headers })).status, 200);
  assert.equal((await refusal(start(ann.client, 'helper', 'Bye', { headers }))).code, 'idempotency-key-reused');
});

forEachService('RUN-18 without ownership a key is the whole tenant’s', async (open) => {
  const app = await open({ host: { AuthToken: token }, token, agents: [{ name: 'helper' }] });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const options = { headers: { 'idempotency-key': 'once' } };
  const first = await start(ann.client, 'helper', 'Hello', options);
  const second = await start(ben.client, 'helper', 'Hello', options);
  assert.equal(second.headers['x-run-id'], first.headers['x-run-id']);
});

const waiting = async (open: OpenApp, ownership: Readonly<Record<string, unknown>> = {}) => {
  const app = await openApprovals(open, {
    ...owned(),
    service: { SessionOwnership: { Enabled: true, RequireAuthenticatedOwner: false, ...ownership } },
  });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const ask = async (client: typeof app.client, sessionId: string): Promise<string> => {
    const runId = await enqueue(client, 'helper', { message: calls(['pay', { amount: 5 }]), sessionId });
    await followToEnd(client, runId);
    return (await pendingOf(app.client)).find((row) => row.runId === runId)?.id ?? assert.fail('nobody is asked');
  };
  return { app, ann, ben, ask };
};

const idsOf = async (rows: Promise<readonly { readonly id: string }[]>) => (await rows).map(({ id }) => id);

forEachService('SESS-28 APPR-24 approvals of another owner are not there, and not to be decided', async (open) => {
  const { app, ann, ben, ask } = await waiting(open);
  const theirs = await ask(ann.client, 'a');
  const own = await ask(ben.client, 'b');
  assert.deepEqual(await idsOf(pendingOf(ben.client)), [own]);
  const paged = ben.client.approvals.list({ query: { take: 1, skip: 1 } });
  assert.deepEqual((await paged).body, [], 'narrowed before paging');
  assert.deepEqual(await idsOf(pendingOf(ann.client)), [theirs]);
  const unknown = '01990000-0000-7000-8000-000000000000';
  for (const call of [
    (id: string) => ben.client.approvals.get({ params: { id } }),
    (id: string) => decide(ben.client, id, true),
    (id: string) => decide(ben.client, id, false, 'No.'),
  ]) {
    const [refused, nothing] = [await refusal(call(theirs)), await refusal(call(unknown))];
    assert.deepEqual([refused.status, refused.code, refused.detail], [404, 'not-found', nothing.detail]);
  }
  assert.deepEqual(await idsOf(pendingOf(ann.client)), [theirs], 'nothing was decided');
  assert.equal((await decide(ann.client, theirs, true)).status, 'Approved');
  assert.equal((await refusal(decide(ben.client, theirs, true))).code, 'not-found', 'a repeat neither');
  // Managers see and decide: the run that goes on is still its owner's.
  assert.deepEqual(await idsOf(pendingOf(app.client)), [own]);
  const { continuationRunId } = await decide(app.client, own, false);
  await followToEnd(ben.client, continuationRunId ?? '');
  assert.equal((await refusal(ann.client.runs.get({ params: { runId: continuationRunId ?? '' } }))).status, 404);
});

for (const refuse of [false, true])
  forEachService(`SESS-27 approvals of nobody’s session, ${refuse ? 'refused' : 'usable by id'}`, async (open) => {
    const { app, ben, ask } = await waiting(open, { RefuseUnownedSessions: refuse });
    const id = await ask(app.client, 'nobody');
    assert.deepEqual(await idsOf(pendingOf(ben.client)), []);
    if (refuse) assert.equal((await refusal(decide(ben.client, id, true))).status, 404);
    else assert.equal((await decide(ben.client, id, true)).status, 'Approved');
  });

forEachDurableService(
  'SESS-28 JOB-26 the job of another owner’s run is not there, and not to be cancelled',
  async (open) => {
    const gate = new Gate();
    const setup = waitingSetup(gate);
    const app = await open({ ...setup, ...owned({ Scheduling: { MaxConcurrentJobs: 1, PollInterval: '1h' } }) });
    const ann = await makeKey(app, 'ann', 'Operator', [...scopes]);
    const ben = await makeKey(app, 'ben', 'Operator', [...scopes]);
    const executing = await enqueue(ann.client, 'helper', { message: 'wait', sessionId: 's-1' });
    await gate.reached;
    const queued = await enqueue(ann.client, 'helper', 'later');
    const list = (client: typeof app.client) => idsOf(client.jobs.list({ query: {} }).then(({ body }) => body));
    assert.deepEqual(await list(ben.client), []);
    assert.deepEqual(await list(ann.client), [queued, executing]);
    assert.deepEqual(await list(app.client), [queued, executing], 'a manager sees all');
    const first = await ann.client.jobs.list({ query: { take: 1, skip: 1, handlerKey: 'acp.agent-run' } });
    assert.deepEqual(
      first.body.map(({ id }) => id),
      [executing],
    );
    for (const id of [executing, queued]) {
      for (const call of [
        () => ben.client.jobs.get({ params: { id } }),
        () => ben.client.jobs.cancel({ params: { id } }),
      ]) {
        const problem = await refusal(call());
        assert.deepEqual(
          [problem.status, problem.code, problem.detail],
          [404, 'not-found', 'There is no job with this id.'],
        );
      }
      assert.equal((await ann.client.jobs.get({ params: { id } })).body.job.id, id);
    }
    assert.equal((await ann.client.jobs.cancel({ params: { id: queued } })).status, 204);
    gate.open();
    await followToEnd(ann.client, executing);
    // What is nobody's run stays the tenant's.
    const { jobId } = (await app.client.retention.run({ query: {} })).body;
    assert.ok((await list(ben.client)).includes(jobId));
    assert.equal((await ben.client.jobs.get({ params: { id: jobId } })).body.job.handlerKey, 'acp.retention');
  },
);

forEachService('SESS-28 statistics are the tenant’s, and their samples the caller’s', async (open) => {
  const app = await open({
    ...owned(),
    agents: [{ name: 'helper' }],
    script: [{ reply: { error: 'provider_error' } }],
  });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const clusters = async (client: typeof app.client) =>
    (await client.statistics.errors({ query: {} })).body.flatMap(({ topClusters }) => topClusters);
  await refusal(start(ann.client, 'helper', { message: 'one', stream: false }));
  assert.deepEqual(
    (await clusters(ben.client)).map(({ count, sampleRunId }) => [count, sampleRunId]),
    [[1, null]],
  );
  await refusal(start(ben.client, 'helper', { message: 'two', stream: false }));
  await refusal(start(ann.client, 'helper', { message: 'three', stream: false }));
  const newest = async (client: typeof app.client) => (await listRuns(client, { take: 1 }))[0]?.id;
  for (const client of [ann.client, ben.client, app.client])
    assert.deepEqual(
      (await clusters(client)).map(({ count, sampleRunId }) => [count, sampleRunId]),
      [[3, await newest(client)]],
    );
  assert.notEqual(await newest(ann.client), await newest(ben.client));
});

forEachService('SESS-28 a policy test looks at the runs that its caller may see', async (open) => {
  const app = await open({
    ...owned(),
    agents: [{ name: 'helper' }],
    script: [{ reply: { text: 'The word is plover.' } }],
  });
  const ann = await makeKey(app, 'ann');
  const ben = await makeKey(app, 'ben');
  const theirs = await runJson(ann.client, 'helper', { message: 'one', sessionId: 'a' });
  const own = await runJson(ben.client, 'helper', 'two');
  for (const body of [
    { guard: { DeniedTerms: ['plover'] } },
    { rule: { requireApproval: ['pay'] } },
    { quota: [{ maxRuns: 1, period: 'Daily' as const }] },
    { price: { demo: { 'demo-1': { Input: 1 } } } },
  ]) {
    const report = (await ben.client.policyTests.run({ body: body as never })).body;
    assert.equal(report.runsExamined, 1, JSON.stringify(body));
    assert.ok(!JSON.stringify(report).includes(theirs.runId));
    assert.equal((await app.client.policyTests.run({ body: body as never })).body.runsExamined, 2);
  }
  const report = (await ben.client.policyTests.run({ body: { guard: { DeniedTerms: ['plover'] } } })).body;
  assert.deepEqual(
    report.guard?.findings.map(({ runId }) => runId),
    [own.runId],
  );
  assert.equal((await listRuns(app.client)).length, 2);
});
