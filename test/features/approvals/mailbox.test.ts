import assert from 'node:assert/strict';
import { forEachDurableService, overHttp } from '../../support/app.ts';
import { enqueue, followToEnd, getRun, listRuns, refusal, runJson, start, typesOf } from '../runs/run-calls.ts';
import {
  auditOf,
  decide,
  messagesOf,
  openApprovals,
  pendingOf,
  queueWaiting,
  respond,
  toolTexts,
} from './approval-world.ts';

const sessionId = 's-1';

forEachDurableService(
  'APPR-11 APPR-21 a queued run asks in the mailbox, one row for each waiting call',
  async (open) => {
    const app = await openApprovals(open);
    const { runId, events, rows } = await queueWaiting(app, sessionId, ['pay', { amount: 5 }], ['look'], ['wipe']);
    assert.deepEqual(
      rows.map(({ toolName, status, arguments: args }) => [toolName, status, args]),
      [
        ['pay', 'Pending', { amount: 5 }],
        ['wipe', 'Pending', {}],
      ],
    );
    const asked = events.filter(({ type }) => type === 'approval.requested');
    for (const [index, row] of rows.entries()) {
      assert.deepEqual(
        [row.requestId, row.toolCallId, row.runId, row.sessionId, row.agentName, row.inBand],
        [asked[index]?.['requestId'], asked[index]?.['toolCallId'], runId, sessionId, 'helper', false],
      );
      assert.deepEqual([row.decidedBy, row.decidedAt, row.reason, row.continuationRunId], [null, null, null, null]);
      assert.equal(Date.parse(row.expiresAt ?? '') - Date.parse(row.createdAt), 24 * 3600 * 1000);
      assert.deepEqual((await app.client.approvals.get({ params: { id: row.id } })).body, row);
    }
    assert.deepEqual(await pendingOf(app.client), [...rows].reverse(), 'APPR-20 newest first');
    assert.equal((await getRun(app.client, runId)).status, 'AwaitingApproval');
  },
);

forEachDurableService('APPR-31 APPR-32 APPR-33 the last decision queues the run that goes on', async (open) => {
  const app = await openApprovals(open);
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay', { amount: 5 }], ['wipe']);
  const [pay, wipe] = rows;
  const first = await decide(app.client, wipe?.id ?? '', false, 'Not today.');
  assert.deepEqual([first.status, first.reason, first.continuationRunId], ['Rejected', 'Not today.', null]);
  assert.deepEqual(
    (await pendingOf(app.client)).map(({ id }) => id),
    [pay?.id],
  );
  const second = await decide(app.client, pay?.id ?? '', true);
  const next = second.continuationRunId ?? '';
  assert.notEqual(next, '');
  const events = await followToEnd(app.client, next);
  assert.deepEqual(typesOf(events).slice(0, 4), ['run.queued', 'run.started', 'tool.invoking', 'tool.invoked']);
  const record = await getRun(app.client, next);
  assert.deepEqual(
    [record.status, record.continuedFromRunId, record.sessionId, record.jobId, record.agentName],
    ['Completed', runId, sessionId, next, 'helper'],
  );
  assert.deepEqual(
    app.done.map(({ name, arguments: args, runId: by }) => [name, args, by]),
    [['pay', { amount: 5 }, next]],
  );
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['pay done', 'Not approved: Not today.']);
  assert.equal((await app.client.approvals.get({ params: { id: wipe?.id ?? '' } })).body.continuationRunId, next);
  assert.equal((await app.client.jobs.get({ params: { id: next } })).body.job.handlerKey, 'acp.approval-resume');
  // The session is free again.
  assert.equal((await runJson(app.client, 'helper', { message: 'Hi', sessionId })).status, 'Completed');
});

forEachDurableService('APPR-25 APPR-28 a decision stands beside its audit entry', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, sessionId, ['pay', { amount: 5 }]);
  const id = rows[0]?.id ?? '';
  for (const body of [{}, { approved: 'yes' }, { approved: null }])
    assert.equal((await refusal(app.client.approvals.decide({ params: { id }, body: body as never }))).status, 400);
  const decided = await decide(app.client, id, true);
  assert.ok(decided.decidedAt !== null);
  const [entry, ...more] = await auditOf(app, 'approval.');
  assert.deepEqual(more, []);
  assert.deepEqual([entry?.action, entry?.entity], ['approval.decide', `approval:${id}`]);
  const after = entry?.after;
  assert.deepEqual([after.decision, after.toolName], ['Approved', 'pay']);
});

forEachDurableService(
  'APPR-28 when the continuation cannot be stored nothing is decided, and the answer is 503',
  async (open) => {
    const app = await openApprovals(open);
    const { rows } = await queueWaiting(app, sessionId, ['pay']);
    const id = rows[0]?.id ?? '';
    for (const what of ['jobs', 'run events', 'runs'] as const) {
      const accept = await app.store.refuse(what);
      const problem = await refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }));
      assert.deepEqual([problem.status, problem.code, problem.retryAfterMs], [503, 'store-unavailable', 1000], what);
      await accept();
      assert.deepEqual((await app.client.approvals.get({ params: { id } })).body, rows[0]);
      assert.deepEqual(await auditOf(app, 'approval.'), []);
    }
    await followToEnd(app.client, (await decide(app.client, id, true)).continuationRunId ?? '');
  },
);

forEachDurableService('APPR-28 when the audit trail cannot be written nothing is decided', async (open) => {
  const app = await openApprovals(open);
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  const accept = await app.store.refuse('audit entries');
  assert.equal((await refusal(app.client.approvals.decide({ params: { id }, body: { approved: true } }))).status, 503);
  await accept();
  assert.deepEqual((await app.client.approvals.get({ params: { id } })).body, rows[0]);
  assert.equal((await listRuns(app.client)).length, 1);
  const next = (await decide(app.client, id, true)).continuationRunId ?? '';
  await followToEnd(app.client, next);
  assert.equal((await getRun(app.client, next)).continuedFromRunId, runId);
});

forEachDurableService(
  'APPR-26 the same decision again is answered with the first, the opposite refused',
  async (open) => {
    const app = await openApprovals(open);
    const { rows } = await queueWaiting(app, sessionId, ['pay']);
    const id = rows[0]?.id ?? '';
    const first = await decide(app.client, id, true, 'Fine.');
    const again = await decide(app.client, id, true, 'Another reason.');
    assert.deepEqual(again, first);
    const problem = await refusal(app.client.approvals.decide({ params: { id }, body: { approved: false } }));
    assert.deepEqual([problem.status, problem.code], [409, 'approval-already-decided']);
    assert.equal((await auditOf(app, 'approval.decide')).length, 1);
    await followToEnd(app.client, first.continuationRunId ?? '');
    assert.equal(app.done.length, 1);
  },
);

forEachDurableService(
  'APPR-30 RUN-30 while rows are pending every new turn of the session is refused',
  async (open) => {
    const app = await openApprovals(open);
    const { events, rows } = await queueWaiting(app, sessionId, ['pay']);
    const requestId = String(events.find(({ type }) => type === 'approval.requested')?.['requestId']);
    const turns = [
      () => start(app.client, 'helper', { message: 'Hi', sessionId }),
      () => start(app.client, 'helper', { message: 'Hi', sessionId, stream: false }),
      () => start(app.client, 'helper', { message: 'Hi', sessionId, concurrency: 'Enqueue' }),
      () => start(app.client, 'helper', { sessionId, approvals: [{ requestId, approved: true }] }),
      () => start(app.client, 'helper', { message: 'Hi', sessionId }, { headers: { prefer: 'respond-async' } }),
    ];
    for (const turn of turns) {
      const problem = await refusal(turn());
      assert.deepEqual([problem.status, problem.code], [409, 'approval-pending']);
    }
    assert.equal((await listRuns(app.client)).length, 1);
    const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
    await followToEnd(app.client, continuationRunId ?? '');
    assert.equal(app.done.length, 1);
  },
);

forEachDurableService('APPR-35 a continuation may ask again, with new rows', async (open) => {
  const app = await openApprovals(open, {
    simulator: {
      respond: (request) => {
        const made = messagesOf(request).filter(({ role }) => role === 'tool').length;
        return made >= 2
          ? { answer: { text: ['All done.'] } }
          : { answer: { toolCalls: [{ id: 'same-id', name: 'pay', arguments: `{"amount":${made}}` }] } };
      },
    },
  });
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay']);
  const second = (await decide(app.client, rows[0]?.id ?? '', true)).continuationRunId ?? '';
  const events = await followToEnd(app.client, second);
  assert.equal(events.at(-1)?.type, 'run.awaiting-approval');
  const [row, ...others] = await pendingOf(app.client);
  assert.deepEqual(others, []);
  assert.notEqual(row?.id, rows[0]?.id);
  assert.notEqual(row?.requestId, rows[0]?.requestId);
  assert.equal(row?.runId, second);
  const third = (await decide(app.client, row?.id ?? '', true)).continuationRunId ?? '';
  await followToEnd(app.client, third);
  const chain = await Promise.all([second, third].map((id) => getRun(app.client, id)));
  assert.deepEqual(
    chain.map(({ status, continuedFromRunId }) => [status, continuedFromRunId]),
    [
      ['AwaitingApproval', runId],
      ['Completed', second],
    ],
  );
  assert.deepEqual(
    app.done.map(({ arguments: args }) => args),
    [{ amount: 0 }, { amount: 1 }],
  );
});

forEachDurableService('APPR-20 paging and the agent name narrow the list; wild values are clamped', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, sessionId, ['pay'], ['wipe']);
  const list = async (query: Record<string, unknown>) =>
    (await app.client.approvals.list({ query: query as never })).body.map(({ id }) => id);
  const [older, newer] = rows.map(({ id }) => id);
  assert.deepEqual(await list({ take: 999_999, skip: -1 }), [newer, older]);
  assert.deepEqual(await list({ take: 0 }), [newer]);
  assert.deepEqual(await list({ skip: 1 }), [older]);
  assert.deepEqual(await list({ agentName: 'helper' }), [newer, older]);
  assert.deepEqual(await list({ agentName: 'other' }), []);
});

forEachDurableService('APPR-20 an unknown approval is 404, a malformed id 400', async (open) => {
  const app = await openApprovals(open);
  const id = '0190b6a2-0000-7000-8000-000000000000';
  assert.equal((await refusal(app.client.approvals.get({ params: { id } }))).status, 404);
  const body = { approved: true };
  assert.equal((await refusal(app.client.approvals.decide({ params: { id }, body }))).status, 404);
  assert.equal((await refusal(app.client.approvals.get({ params: { id: 'x' } }))).status, 400);
});

forEachDurableService('APPR-23 a host that refuses hides the list as 403 and one approval as 404', async (open) => {
  let allowed = true;
  const app = await openApprovals(open, {
    module: {
      runAuthorization: { authorize: async ({ resource }) => ({ allowed: allowed || resource !== 'Approval' }) },
    },
  });
  const { rows } = await queueWaiting(app, sessionId, ['pay']);
  const id = rows[0]?.id ?? '';
  await decide(app.client, id, true);
  allowed = false;
  const listed = await refusal(app.client.approvals.list({ query: {} }));
  assert.deepEqual([listed.status, listed.code], [403, 'run-not-allowed']);
  const unknown = '0190b6a2-0000-7000-8000-000000000000';
  for (const ask of [
    (of: string) => app.client.approvals.get({ params: { id: of } }),
    // The opposite decision: the refusal comes before the 409 that would tell of it.
    (of: string) => app.client.approvals.decide({ params: { id: of }, body: { approved: false } }),
  ]) {
    const [refused, missing] = [await refusal(ask(id)), await refusal(ask(unknown))];
    assert.deepEqual([refused.status, refused.code, refused.detail], [missing.status, missing.code, missing.detail]);
    assert.equal(refused.status, 404);
  }
});

overHttp('APPR-29 two clients decide at the same moment: exactly one wins', async (open) => {
  const app = await openApprovals(open);
  for (let round = 0; round < 5; round += 1) {
    const { rows } = await queueWaiting(app, `s-${round}`, ['pay']);
    const url = `${app.url}/api/approvals/${rows[0]?.id}/decide`;
    // A connection for each, so that neither waits for the other.
    const answers = await Promise.all(
      [true, false, true, false].map(async (approved) => {
        const answer = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', connection: 'close' },
          body: JSON.stringify({ approved }),
        });
        return { approved, status: answer.status, body: (await answer.json()) as Record<string, unknown> };
      }),
    );
    const won = answers.find(({ status }) => status === 200);
    for (const { approved, status, body } of answers)
      assert.deepEqual(
        [status, status === 200 ? body['status'] : body['code']],
        approved === won?.approved ? [200, approved ? 'Approved' : 'Rejected'] : [409, 'approval-already-decided'],
      );
    const next = String(won?.body['continuationRunId']);
    await followToEnd(app.client, next);
    const runs = await listRuns(app.client, { sessionId: `s-${round}` });
    assert.equal(runs.length, 2, 'one continuation');
  }
  assert.equal((await auditOf(app, 'approval.decide')).length, 5);
});

overHttp(
  'APPR-29 APPR-31 decisions on two calls of one run at the same moment queue one continuation',
  async (open) => {
    const app = await openApprovals(open);
    for (let round = 0; round < 5; round += 1) {
      const { rows } = await queueWaiting(app, `s-${round}`, ['pay'], ['wipe'], ['pay', { amount: 3 }]);
      const decided = await Promise.all(rows.map(({ id }) => decide(app.client, id, true)));
      const next = decided.map(({ continuationRunId }) => continuationRunId).filter((id) => id !== null);
      assert.equal(new Set(next).size, 1);
      const events = await followToEnd(app.client, next[0] ?? '');
      assert.equal(events.at(-1)?.type, 'run.completed');
      assert.equal((await listRuns(app.client, { sessionId: `s-${round}` })).length, 2);
    }
    assert.equal(app.done.length, 15);
  },
);

forEachDurableService(
  'APPR-28 while the queue is off nothing is decided, and once it is on again it can be',
  async (open) => {
    const first = await openApprovals(open);
    const { runId, rows } = await queueWaiting(first, sessionId, ['pay'], ['wipe']);
    await first.close();
    const again = (service: Readonly<Record<string, unknown>>) =>
      open({ simulator: { respond }, folder: first.folder, service });
    const off = await again({ Scheduling: { Enabled: false } });
    for (const { id } of rows)
      for (const approved of [true, false]) {
        const problem = await refusal(off.client.approvals.decide({ params: { id }, body: { approved } }));
        assert.deepEqual([problem.status, problem.code], [501, 'scheduling-disabled']);
      }
    for (const row of rows) assert.deepEqual((await off.client.approvals.get({ params: { id: row.id } })).body, row);
    assert.deepEqual(await auditOf(off, 'approval.'), []);
    assert.deepEqual(
      (await listRuns(off.client)).map(({ id }) => id),
      [runId],
    );
    await off.close();
    const on = await again({});
    for (const { id } of rows) assert.equal((await decide(on.client, id, false)).status, 'Rejected');
    assert.equal((await listRuns(on.client)).length, 2);
  },
);

forEachDurableService('APPR-34 the continuation waits while its session is busy', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, sessionId, ['pay']);
  const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
  const after = await enqueue(app.client, 'helper', { message: 'Later', sessionId }).catch(() => null);
  await followToEnd(app.client, continuationRunId ?? '');
  if (after !== null) await followToEnd(app.client, after);
  assert.equal(app.done.length, 1);
});
