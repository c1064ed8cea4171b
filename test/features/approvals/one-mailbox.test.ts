import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import type { PendingApproval } from '../../../src/features/approvals/approvals.schema.ts';
import { forEachDurableService, forEachService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue, followToEnd, getRun, listRuns, refusal, runJson, runStream, start } from '../runs/run-calls.ts';
import {
  auditOf,
  calls,
  decide,
  messagesOf,
  openApprovals,
  pendingOf,
  respond,
  toolTexts,
  type Wanted,
} from './approval-world.ts';

const sessionId = 's-1';
const hourMs = 3_600_000;

/** A session whose turn waits, with the rows of its calls in their order. */
const paused = async (app: TestApp, ...wanted: Wanted[]) => {
  const { runId, approvals } = await runJson(app.client, 'helper', { message: calls(...wanted), sessionId });
  const rows = (await pendingOf(app.client)).filter((row) => row.runId === runId).reverse();
  return { runId, rows, ids: approvals.map(({ requestId }) => requestId) };
};

const rowOf = async (app: TestApp, row: PendingApproval | undefined): Promise<PendingApproval> =>
  (await app.client.approvals.get({ params: { id: row?.id ?? '' } })).body;

const openRequests = async ({ client }: TestApp) =>
  (await client.sessions.get({ params: { sessionId } })).body.openRequests;

const yes = (ids: readonly string[]): NonNullable<AgentRunRequest['approvals']> =>
  ids.map((requestId) => ({ requestId, approved: true }));

const inBand = (app: TestApp, approvals: NonNullable<AgentRunRequest['approvals']>) =>
  runJson(app.client, 'helper', { sessionId, approvals });

const codeInBand = async (app: TestApp, ids: readonly string[]): Promise<string | undefined> =>
  (await refusal(start(app.client, 'helper', { sessionId, approvals: yes(ids) }))).code;

const codeInMailbox = async (app: TestApp, row: PendingApproval | undefined, approved: boolean) =>
  (await refusal(app.client.approvals.decide({ params: { id: row?.id ?? '' }, body: { approved } }))).code;

forEachService(
  'APPR-10 APPR-11 APPR-37 the mailbox has the calls of every run, however it was started',
  async (open) => {
    const app = await openApprovals(open);
    const message = calls(['pay', { amount: 5 }], ['look'], ['wipe']);
    const single = await runJson(app.client, 'helper', { message, sessionId: 's-1' });
    const streamed = await runStream(app.client, 'helper', { message, sessionId: 's-2' });
    const queued = await enqueue(app.client, 'helper', { message, sessionId: 's-3' });
    await followToEnd(app.client, queued);
    const rows = (await pendingOf(app.client)).reverse();
    assert.deepEqual(
      rows.map(({ runId, toolName, arguments: args, inBand: carried }) => [runId, toolName, args, carried]),
      [
        [single.runId, true],
        [streamed.runId, true],
        [queued, false],
      ].flatMap(([runId, carried]) => [
        [runId, 'pay', { amount: 5 }, carried],
        [runId, 'wipe', {}, carried],
      ]),
    );
    for (const row of rows) {
      assert.equal(Date.parse(row.expiresAt ?? '') - Date.parse(row.createdAt), 24 * hourMs);
      assert.deepEqual(await rowOf(app, row), row);
    }
    assert.deepEqual(
      rows.slice(0, 2).map(({ requestId, toolCallId }) => [requestId, toolCallId]),
      single.approvals.map(({ requestId, toolCallId }) => [requestId, toolCallId]),
    );
  },
);

forEachService('APPR-14 APPR-19 APPR-26 what the next run decides is what the mailbox says', async (open) => {
  const app = await openApprovals(open);
  const { rows, ids } = await paused(app, ['pay', { amount: 5 }], ['wipe']);
  const [pay, wipe] = ids as [string, string];
  const { runId } = await inBand(app, [
    { requestId: wipe, approved: false, reason: 'Not today.' },
    { requestId: pay, approved: true },
  ]);
  assert.deepEqual(await pendingOf(app.client), []);
  assert.deepEqual(await openRequests(app), []);
  const after = [await rowOf(app, rows[0]), await rowOf(app, rows[1])];
  const entries = await auditOf(app, 'approval.');
  assert.deepEqual(
    after.map(({ status, reason, continuationRunId, decidedBy }) => [status, reason, continuationRunId, decidedBy]),
    [
      ['Approved', null, runId, entries[0]?.actor],
      ['Rejected', 'Not today.', runId, entries[0]?.actor],
    ],
  );
  assert.ok(after.every(({ decidedAt }) => decidedAt !== null));
  // The same decision again is the first one; the opposite is too late.
  assert.deepEqual(await decide(app.client, rows[0]?.id ?? '', true), after[0]);
  assert.equal(await codeInMailbox(app, rows[0], false), 'approval-already-decided');
  assert.equal(await codeInMailbox(app, rows[1], true), 'approval-already-decided');
  assert.deepEqual(
    entries.map(({ action, entity }) => [action, entity]),
    rows.map(() => ['approval.decide', `run:${runId}`]),
  );
  assert.equal((await auditOf(app, 'approval.')).length, 2, 'a repeat is no decision');
  assert.deepEqual(
    app.done.map(({ name, runId: by }) => [name, by]),
    [['pay', runId]],
  );
  assert.equal((await listRuns(app.client)).length, 2, 'nothing was queued');
});

forEachService('APPR-10 APPR-30 APPR-31 the mailbox decides a call of a run that had a reader', async (open) => {
  const app = await openApprovals(open);
  const { runId, rows, ids } = await paused(app, ['pay', { amount: 5 }], ['wipe']);
  assert.equal((await decide(app.client, rows[1]?.id ?? '', false, 'Not today.')).continuationRunId, null);
  // From now on the others are decided there as well.
  const plain = { message: 'Hi', sessionId };
  for (const named of [ids, ids.slice(0, 1), ['unknown']])
    assert.equal(await codeInBand(app, named), 'approval-pending', named.join());
  assert.equal((await refusal(start(app.client, 'helper', plain))).code, 'approval-pending');
  const { continuationRunId, inBand: carried } = await decide(app.client, rows[0]?.id ?? '', true);
  assert.equal(carried, true);
  const end = (await followToEnd(app.client, continuationRunId ?? '')).at(-1);
  assert.equal(end?.type, 'run.completed');
  assert.equal((await getRun(app.client, continuationRunId ?? '')).continuedFromRunId, runId);
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['pay done', 'Not approved: Not today.']);
  assert.equal(await codeInBand(app, ids), 'approval-already-decided');
  assert.equal((await runJson(app.client, 'helper', plain)).status, 'Completed');
  assert.deepEqual(
    app.done.map(({ name, arguments: args }) => [name, args]),
    [['pay', { amount: 5 }]],
  );
});

forEachService('APPR-16 RUN-33 a plain message rejects what waits, and the mailbox says so', async (open) => {
  const app = await openApprovals(open);
  const { rows, ids } = await paused(app, ['pay'], ['wipe']);
  const { runId, output } = await runJson(app.client, 'helper', { message: 'Never mind', sessionId });
  assert.equal(output, 'You said Never mind.');
  assert.deepEqual(await openRequests(app), []);
  const told = messagesOf(app.simulator.lastRequest()).filter(({ role }) => role === 'tool');
  assert.deepEqual(
    told.map(({ content }) => content),
    ['The call was not approved.', 'The call was not approved.'],
  );
  for (const row of rows) {
    const { status, reason, decidedAt, continuationRunId } = await rowOf(app, row);
    assert.deepEqual(
      [status, reason, continuationRunId],
      ['Rejected', 'The conversation went on with another message.', runId],
    );
    assert.notEqual(decidedAt, null);
    assert.equal(await codeInMailbox(app, row, true), 'approval-already-decided');
  }
  assert.equal(await codeInBand(app, ids), 'approval-already-decided');
  assert.deepEqual(await pendingOf(app.client), []);
  assert.deepEqual(
    (await auditOf(app, 'approval.')).map(({ entity, after }) => [entity, after.decision, after.requestId]),
    ids.map((id) => [`run:${runId}`, 'Rejected', id]),
  );
  assert.deepEqual(app.done, []);
});

forEachService('APPR-16 a queued message rejects what waits as well', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await paused(app, ['pay']);
  const runId = await enqueue(app.client, 'helper', { message: 'Never mind', sessionId });
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
  const { status, continuationRunId } = await rowOf(app, rows[0]);
  assert.deepEqual([status, continuationRunId], ['Rejected', runId]);
});

forEachDurableService('APPR-16 APPR-19 without the audit trail a plain message rejects nothing', async (open) => {
  const app = await openApprovals(open);
  const { rows, ids } = await paused(app, ['pay']);
  const before = await listRuns(app.client);
  const accept = await app.store.refuse('audit entries');
  const problem = await refusal(start(app.client, 'helper', { message: 'Never mind', sessionId }));
  assert.deepEqual([problem.status, problem.code], [503, 'audit-unavailable']);
  await accept();
  assert.deepEqual(await listRuns(app.client), before);
  assert.deepEqual(await pendingOf(app.client), rows);
  assert.equal((await inBand(app, yes(ids))).status, 'Completed');
});

/** Begins two hours ago; what is asked for may be decided for 30 minutes. */
const expiring = { clock: () => testClock({ at: Date.now() - 2 * hourMs }), Approvals: { DefaultExpiration: '30m' } };

forEachService('APPR-15 APPR-27 APPR-39 an approval that comes after its time executes nothing', async (open) => {
  const { Approvals } = expiring;
  const app = await openApprovals(open, {
    clock: expiring.clock(),
    service: { Approvals: { ...Approvals, ScanInterval: '1d' } },
  });
  const { runId, rows, ids } = await paused(app, ['pay', { amount: 5 }]);
  await app.clock.jump(hourMs);
  assert.equal(await codeInBand(app, ids), 'approval-expired');
  assert.equal(await codeInMailbox(app, rows[0], true), 'approval-expired');
  assert.deepEqual(await pendingOf(app.client), []);
  assert.equal((await getRun(app.client, runId)).status, 'AwaitingApproval');
  // A clock regression does not bring an expired call back.
  app.clock.setBack(hourMs);
  assert.equal(await codeInBand(app, ids), 'approval-expired');
  const reply = await runJson(app.client, 'helper', { message: 'Hi', sessionId });
  assert.equal(reply.output, 'You said Hi.');
  assert.equal(await codeInBand(app, ids), 'approval-expired');
  const { status, decidedBy, continuationRunId } = await rowOf(app, rows[0]);
  assert.deepEqual([status, decidedBy, continuationRunId], ['Expired', null, null]);
  assert.deepEqual(
    (await auditOf(app, 'approval.')).map(({ action }) => action),
    ['approval.expire'],
  );
  assert.deepEqual(app.done, []);
});

forEachService('APPR-31 APPR-39 a call that expires while another is decided continues with it', async (open) => {
  const app = await openApprovals(open, {
    clock: expiring.clock(),
    service: { Approvals: { ...expiring.Approvals, ScanInterval: '1d' } },
  });
  const { rows, ids } = await paused(app, ['pay'], ['wipe']);
  await decide(app.client, rows[0]?.id ?? '', true);
  await app.clock.jump(hourMs);
  assert.equal(await codeInBand(app, ids), 'approval-pending', 'the approved call is not lost to another turn');
  const { continuationRunId } = await rowOf(app, rows[0]);
  await followToEnd(app.client, continuationRunId ?? '');
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['pay done', 'Not approved: nobody decided in time.']);
});

// What an earlier version has paused has no rows either.
forEachDurableService(
  'APPR-11 APPR-15 requests without a row are decided in band, within the same time',
  async (open) => {
    const { Approvals } = expiring;
    const first = await openApprovals(open, {
      clock: expiring.clock(),
      service: { Approvals, RunRecording: { Enabled: false } },
    });
    const ask = async (id: string): Promise<string> => {
      const { approvals } = await runJson(first.client, 'helper', { message: calls(['pay']), sessionId: id });
      return approvals[0]?.requestId ?? '';
    };
    const [early, late, overtaken] = [await ask('early'), await ask('late'), await ask('overtaken')];
    assert.deepEqual(await pendingOf(first.client), []);
    await first.close();
    const app = await openApprovals(open, {
      folder: first.folder,
      clock: first.clock,
      service: { Approvals },
      simulator: { respond },
    });
    const answer = (id: string, requestId: string) => ({ sessionId: id, approvals: yes([requestId]) });
    assert.deepEqual(await pendingOf(app.client), []);
    assert.equal((await runJson(app.client, 'helper', answer('early', early))).status, 'Completed');
    assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId: 'overtaken' })).status, 'Completed');
    await app.clock.jump(hourMs);
    assert.equal((await refusal(start(app.client, 'helper', answer('late', late)))).code, 'approval-expired');
    const again = await refusal(start(app.client, 'helper', answer('overtaken', overtaken)));
    assert.equal(again.code, 'approval-already-decided');
    assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId: 'late' })).status, 'Completed');
    assert.equal(app.done.length, 1, 'the early one alone');
  },
);

forEachDurableService('APPR-28 while the queue is off the next run still decides', async (open) => {
  const app = await openApprovals(open, { service: { Scheduling: { Enabled: false } } });
  const { rows, ids } = await paused(app, ['pay']);
  assert.equal(await codeInMailbox(app, rows[0], true), 'scheduling-disabled');
  assert.equal((await inBand(app, yes(ids))).status, 'Completed');
  assert.equal((await rowOf(app, rows[0])).status, 'Approved');
});

forEachDurableService(
  'APPR-28 APPR-30 while the queue is off, what is left of a decided run blocks each turn',
  async (open) => {
    const first = await openApprovals(open);
    const { rows, ids } = await paused(first, ['pay'], ['wipe']);
    await decide(first.client, rows[0]?.id ?? '', true);
    await first.close();
    const app = await open({
      simulator: { respond },
      folder: first.folder,
      service: { Scheduling: { Enabled: false } },
    });
    assert.equal(await codeInBand(app, ids), 'approval-pending');
    assert.equal((await refusal(start(app.client, 'helper', { message: 'Hi', sessionId }))).code, 'approval-pending');
    assert.equal((await rowOf(app, rows[1])).status, 'Pending');
  },
);

forEachService('APPR-32 the continuing run is in the lane of its kind where its source had none', async (open) => {
  const LaneByHandlerKey = { 'acp.approval-resume': 'decided' };
  const app = await openApprovals(open, { service: { Scheduling: { LaneByHandlerKey } } });
  const { rows } = await paused(app, ['pay']);
  const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
  const [queued] = await followToEnd(app.client, continuationRunId ?? '');
  assert.deepEqual([queued?.type, queued?.['lane']], ['run.queued', 'decided']);
});

forEachDurableService('APPR-16 APPR-19 a queued message waits for the audit trail', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await paused(app, ['pay']);
  const accept = await app.store.refuse('audit entries');
  const runId = await enqueue(app.client, 'helper', { message: 'Never mind', sessionId });
  await eventually('the job back in line', async () => {
    const { job } = (await app.client.jobs.get({ params: { id: runId } })).body;
    return job.status === 'Pending' && job.errorCode === 'store-unavailable';
  });
  await accept();
  assert.equal((await rowOf(app, rows[0])).status, 'Pending');
  await app.clock.jump(hourMs);
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
  const { status, continuationRunId } = await rowOf(app, rows[0]);
  assert.deepEqual([status, continuationRunId], ['Rejected', runId]);
});

forEachService('APPR-40 the deletion of a session expires what its run had asked for', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await paused(app, ['pay']);
  await app.client.sessions.remove({ params: { sessionId } });
  assert.equal((await rowOf(app, rows[0])).status, 'Expired');
  assert.equal(await codeInMailbox(app, rows[0], true), 'approval-expired');
  assert.deepEqual(await pendingOf(app.client), []);
});

forEachService('APPR-32 TOOL-35 a run that the mailbox continues may end with a call of the client', async (open) => {
  const locate = { name: 'locate', description: 'Where', inputSchema: { type: 'object' }, runsOnClient: true as const };
  const app = await openApprovals(open, { more: [locate as never] });
  const { rows } = await paused(app, ['pay'], ['locate']);
  const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
  const end = (await followToEnd(app.client, continuationRunId ?? '')).at(-1);
  assert.equal(end?.type, 'run.awaiting-input');
  const callId = String(end?.['clientToolCalls'][0].callId);
  const reply = await runJson(app.client, 'helper', { sessionId, toolResults: [{ callId, result: 'Bern' }] });
  assert.equal(reply.status, 'Completed');
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['pay done', 'Bern']);
});

forEachDurableService(
  'APPR-10 APPR-29 the mailbox and the next run decide at the same moment: one wins',
  async (open) => {
    const app = await openApprovals(open);
    for (let round = 0; round < 6; round += 1) {
      const session = `s-${round}`;
      const { runId } = await runJson(app.client, 'helper', { message: calls(['pay']), sessionId: session });
      const [row] = (await pendingOf(app.client)).filter((entry) => entry.runId === runId);
      const { id = '', requestId = '' } = row ?? {};
      const brought = {
        sessionId: session,
        ...(round % 2 === 0 ? { approvals: yes([requestId]) } : { message: 'Hi' }),
      };
      const mailbox = () => decide(app.client, id, round % 4 < 2);
      const next = () => runJson(app.client, 'helper', brought);
      const both = round % 3 === 0 ? [mailbox(), next()] : [next(), mailbox()];
      const refused = (await Promise.allSettled(both)).flatMap((end) =>
        end.status === 'rejected' ? [end.reason] : [],
      );
      const { status, continuationRunId } = await rowOf(app, row);
      const runs = await listRuns(app.client, { sessionId: session });
      // The continuing run, whichever it is, is the only one that executes the call.
      await followToEnd(app.client, continuationRunId ?? '');
      // A message may come when the run that the mailbox queued has ended already: then it is a turn of its own.
      const isNextTurn = refused.length === 0 && 'message' in brought;
      assert.ok(runs.length === 2 || (runs.length === 3 && isNextTurn), JSON.stringify(runs));
      assert.ok(
        refused.length <= 1 && refused.every(({ code }) => /^approval-|^session-busy$/.test(code)),
        String(refused),
      );
      const made = app.done.filter(({ runId: by }) => runs.some((run) => run.id === by));
      assert.deepEqual(
        made.map(({ runId: by }) => by),
        status === 'Approved' ? [continuationRunId] : [],
      );
    }
  },
);
