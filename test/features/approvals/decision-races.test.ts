import assert from 'node:assert/strict';
import type { RunAuthorization } from '../../../src/core/caller/run-authorization.ts';
import { approvalStore } from '../../../src/features/approvals/approvals.store.ts';
import { forEachDurableService, forEachService, overHttp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue, followToEnd, Gate, getRun, listRuns, post, refusal, runJson } from '../runs/run-calls.ts';
import { auditOf, calls, decide, openApprovals, pendingOf, queueWaiting, toolTexts } from './approval-world.ts';

const sessionId = 's-1';

const hourMs = 3_600_000;

/** Begins an hour ago; whatever is asked for lapses within that hour. */
const lapsing = (ScanInterval: string) => ({
  clock: testClock({ at: Date.now() - hourMs }),
  service: { Approvals: { DefaultExpiration: '30m', ScanInterval } },
});

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

forEachService('APPR-27 an approval that expires while it is decided is not decided', async (open) => {
  const gate = new Gate();
  const app = await openApprovals(open, { module: holdingDecisions(gate) as never, ...lapsing('1d') });
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  const decided = refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
  await gate.reached;
  await app.clock.jump(hourMs);
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
  const app = await openApprovals(open, { module: holdingDecisions(gate) as never, ...lapsing('20ms') });
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  const decided = refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
  await gate.reached;
  const approvals = app.store.open().stores(approvalStore);
  await app.clock.jump(hourMs);
  await eventually('the scan', async () => (await approvals.ofRun(runId))[0]?.status === 'Expired');
  gate.open();
  assert.equal((await decided).code, 'approval-expired');
  assert.deepEqual(
    (await auditOf(app, 'approval.')).map(({ action }) => action),
    ['approval.expire'],
  );
});

forEachDurableService('AUDIT-19 AUDIT-20 a call expires without its entry, and the log says so', async (open) => {
  const app = await openApprovals(open, lapsing('20ms'));
  const { runId } = await queueWaiting(app, sessionId, ['pay']);
  const approvals = app.store.open().stores(approvalStore);
  await app.store.refuse('audit entries');
  await app.clock.jump(hourMs);
  await eventually('the scan', async () => (await approvals.ofRun(runId))[0]?.status === 'Expired');
  await eventually('the line in the log', () => app.log.some(({ fields }) => fields['action'] === 'approval.expire'));
  assert.deepEqual(await auditOf(app, 'approval.'), []);
});

forEachService(
  'APPR-31 a call that expires after another was decided queues the continuation, and no turn comes between',
  async (open) => {
    const app = await openApprovals(open, lapsing('1d'));
    const { runId, rows } = await queueWaiting(app, sessionId, ['pay', { amount: 5 }], ['wipe']);
    const [pay] = rows.map(({ id }) => id);
    assert.equal((await decide(app.client, pay ?? '', true)).continuationRunId, null);
    await app.clock.jump(hourMs);
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

forEachService('APPR-36 AGENT-7 an agent that was edited goes on in the version that paused', async (open) => {
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

forEachService(
  'APPR-36 AGENT-7 a run goes on in no other agent that was created under the name of its own meanwhile',
  async (open) => {
    const app = await openApprovals(open);
    const model = { provider: 'local', model: 'any' };
    const params = { name: 'helper' };
    const { rows } = await queueWaiting(app, sessionId, ['pay']);
    const { rows: others } = await queueWaiting(app, 's-2', ['pay']);
    await app.client.agents.remove({ params });
    // Of another time, as deleting and creating take some.
    await app.clock.jump(1000);
    await app.client.agents.create({ body: { ...params, model, toolNames: ['pay'] } });
    const failsToGoOn = async (id: string): Promise<void> => {
      const { continuationRunId } = await decide(app.client, id, true);
      const end = (await followToEnd(app.client, continuationRunId ?? '')).at(-1);
      assert.deepEqual(
        [end?.type, end?.['error'].class, end?.['error'].type],
        ['run.failed', 'CompilationFailed', 'agent_not_found'],
      );
    };
    await failsToGoOn(rows[0]?.id ?? '');
    // Nor where the version is not the current one of the other.
    await app.client.agents.save({
      params,
      body: { ...params, model, toolNames: ['pay', 'look'], expectedVersion: 1 },
    });
    await failsToGoOn(others[0]?.id ?? '');
    assert.deepEqual(app.done, []);
    const { rows: own } = await queueWaiting(app, 's-3', ['pay']);
    const { continuationRunId } = await decide(app.client, own[0]?.id ?? '', true);
    await followToEnd(app.client, continuationRunId ?? '');
    assert.deepEqual(
      app.done.map(({ runId }) => runId),
      [continuationRunId],
    );
  },
);

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
  for (const what of ['audit entries', 'audit heads', 'approvals', 'jobs', 'runs'] as const) {
    const accept = await app.store.refuse(what);
    const problem = await refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
    const code = what.startsWith('audit') ? 'audit-unavailable' : 'store-unavailable';
    assert.deepEqual([problem.status, problem.code], [503, code], what);
    await accept();
    assert.deepEqual((await app.client.approvals.get({ params: { id } })).body, rows[0], what);
    assert.deepEqual(await auditOf(app, 'approval.'), [], what);
    assert.equal((await listRuns(app.client)).length, 1, what);
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
    const broken = async (what: 'audit entries' | 'standing rules', change: () => Promise<unknown>) => {
      const before = [await list(), await auditOf(app, 'approval-rule.')];
      const accept = await app.store.refuse(what);
      const problem = await refusal(change());
      await accept();
      assert.deepEqual([await list(), await auditOf(app, 'approval-rule.')], before, what);
      return problem;
    };
    const entry = await broken('audit entries', create);
    assert.deepEqual([entry.status, entry.code], [503, 'audit-unavailable']);
    await broken('standing rules', create);
    const rule = (await create()).body;
    const remove = () => app.client.approvalRules.remove({ params: { ruleId: rule.id } });
    assert.equal((await broken('audit entries', remove)).code, 'audit-unavailable');
    await broken('standing rules', remove);
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
  for (const what of ['audit entries', 'standing rules'] as const) {
    const accept = await app.store.refuse(what);
    assert.ok((await refusal(answer())).status >= 500, what);
    await accept();
    assert.deepEqual((await app.client.approvalRules.list({ query: {} })).body, [], what);
    assert.deepEqual(await auditOf(app, 'approval'), [], what);
    assert.deepEqual(app.done, [], what);
  }
  assert.equal((await answer()).status, 'Completed');
  assert.equal((await app.client.approvalRules.list({ query: {} })).body.length, 1);
  assert.equal(app.done.length, 1);
});

forEachService('RULE-8 RULE-11 a rule made while a run waits in line counts for its calls', async (open) => {
  const app = await openApprovals(open);
  const first = await queueWaiting(app, sessionId, ['pay']);
  await app.client.approvalRules.create({ body: { toolName: 'pay', agentName: 'helper' } });
  assert.equal((await pendingOf(app.client)).length, 1, 'what waits goes on waiting');
  const { continuationRunId } = await decide(app.client, first.rows[0]?.id ?? '', false);
  await followToEnd(app.client, continuationRunId ?? '');
  const runId = await enqueue(app.client, 'helper', { message: calls(['pay']), sessionId });
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
});

forEachService(
  'APPR-11 APPR-27 what somebody was told has expired does not wait again when the clock is set back, but what nobody was told of does',
  async (open) => {
    const app = await openApprovals(open, lapsing('1d'));
    const told = ['read', 'decided', 'overtaken', 'listed'];
    const ids = new Map<string, string>();
    for (const session of told) ids.set(session, (await queueWaiting(app, session, ['pay'])).rows[0]?.id ?? '');
    const idOf = (session: string): string => ids.get(session) ?? '';
    const late = async (session: string): Promise<string | undefined> =>
      (await refusal(app.client.approvals.decide({ params: { id: idOf(session) }, body: { approved: true } }))).code;
    const statusOf = async (session: string): Promise<string> =>
      (await app.client.approvals.get({ params: { id: idOf(session) } })).body.status;
    const waiting = async (): Promise<string[]> => (await pendingOf(app.client)).map((row) => row.sessionId);

    await app.clock.jump(hourMs);
    assert.equal(await statusOf('read'), 'Expired');
    assert.equal(await late('decided'), 'approval-expired');
    assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId: 'overtaken' })).status, 'Completed');
    // The list of another tenant tells nobody of these.
    assert.deepEqual((await app.inTenant('other').approvals.list({ query: {} })).body, []);
    app.clock.setBack(hourMs);
    assert.deepEqual(await waiting(), ['listed'], 'it may still be decided');
    await app.clock.jump(hourMs);
    assert.deepEqual(await waiting(), []);
    app.clock.setBack(hourMs);
    assert.deepEqual(await waiting(), []);
    for (const session of told) {
      assert.equal(await late(session), 'approval-expired', session);
      assert.equal(await statusOf(session), 'Expired', session);
    }
    assert.deepEqual(
      (await auditOf(app, 'approval.')).map(({ action }) => action),
      told.map(() => 'approval.expire'),
    );
    assert.deepEqual(app.done, []);
  },
);
