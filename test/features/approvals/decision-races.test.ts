import assert from 'node:assert/strict';
import type { RunAuthorization } from '../../../src/core/caller/run-authorization.ts';
import { forEachDurableService, overHttp } from '../../support/app.ts';
import { enqueue, followToEnd, Gate, getRun, listRuns, post, refusal, runJson } from '../runs/run-calls.ts';
import { auditOf, calls, decide, openApprovals, pendingOf, queueWaiting, toolTexts } from './approval-world.ts';

const sessionId = 's-1';

type Authorize = RunAuthorization['allows'];

/** A host that holds every decision at the gate: the approval has been read by then. */
const holdingDecisions = (gate: Gate) => ({
  runAuthorization: {
    authorize: async ({ action }: { action: Parameters<Authorize>[1] }) => {
      if (action === 'Decide') await gate.pass();
      return { allowed: true };
    },
  },
});

forEachDurableService('APPR-27 an approval that expires while it is decided is not decided', async (open) => {
  const gate = new Gate();
  const app = await openApprovals(open, { module: holdingDecisions(gate) as never });
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  const decided = refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
  await gate.reached;
  app.change('update service_approvals set expires_at = ? where id = ?', Date.now() - 1, id);
  gate.open();
  const problem = await decided;
  assert.deepEqual([problem.status, problem.code], [409, 'approval-expired']);
  const { status, decidedAt, continuationRunId } = (await app.client.approvals.get({ params: { id } })).body;
  assert.deepEqual([status, decidedAt, continuationRunId], ['Expired', null, null]);
  assert.deepEqual(await auditOf(app, 'approval.decide'), []);
  // APPR-39: nothing was queued, and the session takes its next message.
  assert.deepEqual(
    (await listRuns(app.client)).map(({ id: run }) => run),
    [runId],
  );
  assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId })).status, 'Completed');
  assert.deepEqual(app.done, []);
});

forEachDurableService('APPR-27 APPR-38 the scan and a decision at the same moment agree', async (open) => {
  const gate = new Gate();
  const app = await openApprovals(open, {
    module: holdingDecisions(gate) as never,
    service: { Approvals: { ScanInterval: '20ms' } },
  });
  const { rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  const decided = refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
  await gate.reached;
  app.change('update service_approvals set expires_at = ? where id = ?', Date.now() - 1, id);
  const stored = () => app.rows<{ status: string }>('select status from service_approvals where id = ?', id)[0]?.status;
  while (stored() !== 'Expired') await new Promise((resolve) => setImmediate(resolve));
  gate.open();
  assert.equal((await decided).code, 'approval-expired');
  assert.deepEqual(
    (await auditOf(app, 'approval.')).map(({ action }) => action),
    ['approval.expire'],
  );
});

forEachDurableService(
  'APPR-31 a call that expires after another was decided queues the continuation, and no turn comes between',
  async (open) => {
    const app = await openApprovals(open, { service: { Approvals: { ScanInterval: '1h' } } });
    const { runId, rows } = await queueWaiting(app, sessionId, ['pay', { amount: 5 }], ['wipe']);
    const [pay, wipe] = rows.map(({ id }) => id);
    assert.equal((await decide(app.client, pay ?? '', true)).continuationRunId, null);
    app.change('update service_approvals set expires_at = ? where id = ?', Date.now() - 1, wipe);
    // The scan has not come: whoever asks first completes it, and the approved call is not lost to another turn.
    const turn = await refusal(runJson(app.client, 'helper', { message: 'Hi', sessionId }));
    assert.equal(turn.code, 'approval-pending');
    const next = (await app.client.approvals.get({ params: { id: pay ?? '' } })).body.continuationRunId ?? '';
    assert.equal((await followToEnd(app.client, next)).at(-1)?.type, 'run.completed');
    assert.equal((await getRun(app.client, next)).continuedFromRunId, runId);
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['pay done', 'Not approved: nobody decided in time.']);
    assert.deepEqual(
      app.done.map(({ name }) => name),
      ['pay'],
    );
    assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId })).status, 'Completed');
  },
);

overHttp('APPR-15 two clients bring the same decision at the same moment: one run takes it', async (open) => {
  const app = await openApprovals(open);
  for (let round = 0; round < 5; round += 1) {
    const session = `s-${round}`;
    const { approvals } = await runJson(app.client, 'helper', { message: calls(['pay']), sessionId: session });
    const requestId = approvals[0]?.requestId ?? '';
    const answers = await Promise.all(
      [true, true, false].map(async (approved) => {
        const body = { sessionId: session, stream: false, approvals: [{ requestId, approved }] };
        const answer = await post(app, '/api/agents/helper/run', body, { connection: 'close' });
        return { approved, status: answer.status, body: (await answer.json()) as Record<string, unknown> };
      }),
    );
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const { status, body } of answers)
      if (status !== 200) {
        assert.equal(status, 409);
        assert.match(String(body['code']), /^(session-busy|approval-already-decided)$/);
      }
    assert.equal(
      app.done.filter(({ runId }) => runId === won[0]?.body['runId']).length,
      won[0]?.approved === true ? 1 : 0,
    );
    assert.equal((await listRuns(app.client, { sessionId: session })).length, 2, 'the other made no row');
  }
  assert.equal((await auditOf(app, 'approval.decide')).length, 5);
});

forEachDurableService('APPR-36 AGENT-7 an agent that was edited goes on in the version that paused', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, sessionId, ['pay', { amount: 5 }]);
  const model = { provider: 'local', model: 'other' };
  await app.client.agents.save({
    params: { name: 'helper' },
    body: { name: 'helper', model, toolNames: ['look'], expectedVersion: 1 },
  });
  const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
  const events = await followToEnd(app.client, continuationRunId ?? '');
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal((await getRun(app.client, continuationRunId ?? '')).agentVersion, 1);
  assert.equal(app.done.length, 1);
  const next = await runJson(app.client, 'helper', { message: 'Hi', sessionId });
  assert.deepEqual([next.agentVersion, next.modelId], [2, 'other']);
});

forEachDurableService('APPR-36 a tool that is gone fails the run that goes on, not the decision', async (open) => {
  const before = await openApprovals(open);
  const { rows } = await queueWaiting(before, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  await before.close();
  const app = await open({ simulator: {}, folder: before.folder });
  const decided = await decide(app.client, id, true);
  assert.equal(decided.status, 'Approved');
  const end = (await followToEnd(app.client, decided.continuationRunId ?? '')).at(-1);
  assert.deepEqual(
    [end?.type, end?.['error'].class, end?.['error'].type],
    ['run.failed', 'CompilationFailed', 'compilation_failed'],
  );
  assert.equal((await app.client.approvals.get({ params: { id } })).body.status, 'Approved');
  assert.deepEqual(await pendingOf(app.client), []);
});

forEachDurableService('APPR-28 what fails in the middle of a decision decides nothing', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  for (const [action, table] of [
    ['insert', 'service_audit_entries'],
    ['update', 'service_audit_heads'],
    ['update', 'service_approvals'],
    ['insert', 'service_jobs'],
    ['insert', 'service_runs'],
  ] as const) {
    app.change(`create trigger broken before ${action} on ${table} begin select raise(abort, 'out of order'); end`);
    const problem = await refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
    // A trigger is no failure that the store knows by itself, only its audit trail has an answer for whatever fails.
    if (table.startsWith('service_audit_'))
      assert.deepEqual([problem.status, problem.code], [503, 'audit-unavailable']);
    else assert.equal(problem.status, 503, table);
    app.change('drop trigger broken');
    assert.deepEqual((await app.client.approvals.get({ params: { id } })).body, rows[0], table);
    assert.deepEqual(await auditOf(app, 'approval.'), [], table);
    assert.equal((await listRuns(app.client)).length, 1, table);
  }
  const { continuationRunId } = await decide(app.client, id, true);
  assert.equal((await followToEnd(app.client, continuationRunId ?? '')).at(-1)?.type, 'run.completed');
  assert.equal(app.done.length, 1);
});

forEachDurableService(
  'RULE-12 a standing rule and its audit entry are written together or not at all',
  async (open) => {
    const app = await openApprovals(open);
    const list = async () => (await app.client.approvalRules.list({ query: {} })).body;
    const create = () => app.client.approvalRules.create({ body: { toolName: 'pay' } });
    const broken = async (table: string, action: 'insert' | 'delete', change: () => Promise<unknown>) => {
      const before = [await list(), await auditOf(app, 'approval-rule.')];
      app.change(`create trigger broken before ${action} on ${table} begin select raise(abort, 'out of order'); end`);
      const problem = await refusal(change());
      app.change('drop trigger broken');
      assert.deepEqual([await list(), await auditOf(app, 'approval-rule.')], before, `${action} ${table}`);
      return problem;
    };
    const entry = await broken('service_audit_entries', 'insert', create);
    assert.deepEqual([entry.status, entry.code], [503, 'audit-unavailable']);
    await broken('service_approval_rules', 'insert', create);
    const rule = (await create()).body;
    const remove = () => app.client.approvalRules.remove({ params: { ruleId: rule.id } });
    assert.equal((await broken('service_audit_entries', 'insert', remove)).code, 'audit-unavailable');
    await broken('service_approval_rules', 'delete', remove);
    await remove();
    assert.deepEqual(
      (await auditOf(app, 'approval-rule.')).map(({ action, entity }) => [action, entity]),
      [
        ['approval-rule.create', `approval-rule:${rule.id}`],
        ['approval-rule.delete', `approval-rule:${rule.id}`],
      ],
    );
  },
);

forEachDurableService('RULE-12 APPR-18 what is remembered is stored with the decision or not at all', async (open) => {
  const app = await openApprovals(open);
  const { approvals } = await runJson(app.client, 'helper', { message: calls(['pay']), sessionId });
  const requestId = approvals[0]?.requestId ?? '';
  const answer = () =>
    runJson(app.client, 'helper', { sessionId, approvals: [{ requestId, approved: true, remember: true }] });
  for (const table of ['service_audit_entries', 'service_approval_rules']) {
    app.change(`create trigger broken before insert on ${table} begin select raise(abort, 'out of order'); end`);
    assert.ok((await refusal(answer())).status >= 500, table);
    app.change('drop trigger broken');
    assert.deepEqual((await app.client.approvalRules.list({ query: {} })).body, [], table);
    assert.deepEqual(await auditOf(app, 'approval'), [], table);
    assert.deepEqual(app.done, [], table);
  }
  assert.equal((await answer()).status, 'Completed');
  assert.equal((await app.client.approvalRules.list({ query: {} })).body.length, 1);
  assert.equal(app.done.length, 1);
});

forEachDurableService('RULE-8 RULE-11 a rule made while a run waits in line counts for its calls', async (open) => {
  const app = await openApprovals(open);
  const first = await queueWaiting(app, sessionId, ['pay']);
  await app.client.approvalRules.create({ body: { toolName: 'pay', agentName: 'helper' } });
  assert.equal((await pendingOf(app.client)).length, 1, 'what waits goes on waiting');
  const { continuationRunId } = await decide(app.client, first.rows[0]?.id ?? '', false);
  await followToEnd(app.client, continuationRunId ?? '');
  const runId = await enqueue(app.client, 'helper', { message: calls(['pay']), sessionId });
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
});
