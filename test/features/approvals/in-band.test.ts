import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import { sessionRequestStore } from '../../../src/features/sessions/turns/session-requests.store.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { followToEnd, getRun, listRuns, refusal, runJson, runStream, start, tool, typesOf } from '../runs/run-calls.ts';
import {
  auditOf,
  calls,
  decide,
  messagesOf,
  openApprovals,
  pendingOf,
  queueWaiting,
  toolTexts,
  type Wanted,
} from './approval-world.ts';

const sessionId = 's-1';

/** A session whose turn waits; its answer. */
const paused = (app: TestApp, ...wanted: Wanted[]) =>
  runJson(app.client, 'helper', { message: calls(...wanted), sessionId });

const answer = (app: TestApp, approvals: NonNullable<AgentRunRequest['approvals']>, message?: string) =>
  runJson(app.client, 'helper', { sessionId, approvals, ...(message === undefined ? {} : { message }) });

forEachDurableService(
  'APPR-8 TOOL-29 the other calls of the turn run first, then the run closes and asks',
  async (open) => {
    const app = await openApprovals(open);
    const reply = await paused(app, ['pay', { amount: 5 }], ['look'], ['wipe']);
    assert.equal(reply.status, 'AwaitingApproval');
    assert.equal(reply.output, null);
    assert.deepEqual(
      app.done.map(({ name }) => name),
      ['look'],
    );
    assert.deepEqual(
      reply.approvals.map(({ toolName, arguments: args, presentation }) => [toolName, args, presentation]),
      [
        ['pay', { amount: 5 }, null],
        ['wipe', {}, null],
      ],
    );
    const events = await followToEnd(app.client, reply.runId);
    assert.deepEqual(typesOf(events).slice(-6), [
      'usage.updated',
      'tool.invoking',
      'tool.invoked',
      'approval.requested',
      'approval.requested',
      'run.awaiting-approval',
    ]);
    const asked = events.filter(({ type }) => type === 'approval.requested');
    assert.deepEqual(
      asked.map(({ requestId, toolCallId }) => [requestId, toolCallId]),
      reply.approvals.map(({ requestId, toolCallId }) => [requestId, toolCallId]),
    );
    const end = events.at(-1);
    assert.deepEqual(
      end?.['approvals'].map(({ requestId }: { requestId: string }) => requestId),
      reply.approvals.map(({ requestId }) => requestId),
    );
    assert.equal(end?.['sessionId'], sessionId);
    const record = await getRun(app.client, reply.runId);
    assert.equal(record.status, 'AwaitingApproval');
    assert.equal(record.error, null);
    assert.equal(record.eventCount, events.length);
    assert.deepEqual(await listRuns(app.client, { status: 'AwaitingApproval' }), [record]);
    assert.deepEqual(
      (await pendingOf(app.client)).map(({ requestId, inBand }) => [requestId, inBand]).reverse(),
      reply.approvals.map(({ requestId }) => [requestId, true]),
      'APPR-10 the mailbox has them, too',
    );
  },
);

forEachDurableService('APPR-14 TOOL-30 approved calls run first in the run that brings the decision', async (open) => {
  const app = await openApprovals(open);
  const first = await paused(app, ['pay', { amount: 5 }], ['look'], ['wipe']);
  const [pay, wipe] = first.approvals;
  const second = await runStream(app.client, 'helper', {
    sessionId,
    approvals: [
      { requestId: wipe?.requestId ?? '', approved: false, reason: 'Too dangerous.' },
      { requestId: pay?.requestId ?? '', approved: true },
    ],
  });
  assert.deepEqual(
    app.done.map(({ name, arguments: args }) => [name, args]),
    [
      ['look', {}],
      ['pay', { amount: 5 }],
    ],
  );
  assert.deepEqual(typesOf(second.events).slice(0, 3), ['run.started', 'tool.invoking', 'tool.invoked']);
  assert.equal(second.events[0]?.['continuedFromRunId'], first.runId);
  assert.equal((await getRun(app.client, second.runId)).continuedFromRunId, first.runId);
  // All results stand after the turn's calls, in the order of the calls; the reason is told.
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['pay done', 'look done', 'Not approved: Too dangerous.']);
  assert.equal(second.events.at(-1)?.type, 'run.completed');
  // TOOL-24 the call is a record of the run that executed it, and a rejection is none.
  const names = async (runId: string) =>
    (await app.client.runs.tools({ params: { runId } })).body.map(({ toolName }) => toolName);
  assert.deepEqual(await names(first.runId), ['look']);
  assert.deepEqual(await names(second.runId), ['pay']);
  const [source] = await app.store.open().stores(sessionRequestStore).list('default', sessionId);
  assert.equal(app.done[1]?.idempotencyKey, source?.idempotency_key, 'TOOL-27');
});

forEachDurableService(
  'TOOL-30 an approved call needs the permission of the caller that brings the decision',
  async (open) => {
    const token = 'a-shared-token-of-the-host';
    const done: string[] = [];
    const guarded = tool('refund', async () => String(done.push('refund')), {
      requiresApproval: true,
      requiredPermission: 'payments.refund',
      inputSchema: { type: 'object' },
    });
    const app = await openApprovals(open, { tools: [guarded], host: { AuthToken: token }, token });
    const key = await app.client.keys.create({ body: { name: 'k', scopes: ['RunsWrite', 'RunsRead'] } });
    const other = await app.clientFor(key.body.plaintextKey);
    const ask = async (client: typeof other, id: string) =>
      (await runJson(client, 'helper', { message: calls(['refund']), sessionId: id })).approvals[0]?.requestId ?? '';
    const yes = async (client: typeof other, id: string, requestId: string) =>
      runJson(client, 'helper', { sessionId: id, approvals: [{ requestId, approved: true }] });

    // The shared token has every permission; the key that approves has none.
    const requestId = await ask(app.client, 's-1');
    const { runId } = await yes(other, 's-1', requestId);
    assert.deepEqual(done, []);
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['This call needs the permission payments.refund.']);
    const [record] = (await app.client.runs.tools({ params: { runId } })).body;
    assert.deepEqual([record?.authorizationDenied, record?.succeeded], [true, false]);
    await yes(app.client, 's-2', await ask(app.client, 's-2'));
    assert.deepEqual(done, ['refund']);
  },
);

forEachDurableService(
  'TOOL-30 TOOL-11 an approved call is authorized and validated again, queued or not',
  async (open) => {
    const verdict = { allowed: true, fits: true };
    const asked: unknown[] = [];
    const done: unknown[] = [];
    const pay = tool('pay', async (args) => String(done.push(args)), {
      requiresApproval: true,
      inputSchema: { type: 'object', properties: { amount: { type: 'number' } } },
      validate: () => (verdict.fits ? [] : ['amount is above what is left today']),
    });
    const app = await openApprovals(open, {
      tools: [pay],
      authorizer: {
        authorize: async (request) => {
          asked.push(request.arguments);
          return { allowed: verdict.allowed, reason: 'The till is closed.' };
        },
      },
    });
    const args = { amount: 5 };
    const goesOn = {
      'in band': async (): Promise<string> => {
        const first = await paused(app, ['pay', args]);
        return (
          await answerLater(() => answer(app, [{ requestId: first.approvals[0]?.requestId ?? '', approved: true }]))
        ).runId;
      },
      queued: async (): Promise<string> => {
        const { rows } = await queueWaiting(app, sessionId, ['pay', args]);
        const decided = await answerLater(() => decide(app.client, rows[0]?.id ?? '', true));
        await followToEnd(app.client, decided.continuationRunId ?? '');
        return decided.continuationRunId ?? '';
      },
    };
    let changed: Partial<typeof verdict> = {};
    /** What the host allows changes while the call waits. */
    const answerLater = async <T>(decision: () => Promise<T>): Promise<T> => {
      Object.assign(verdict, changed);
      return decision();
    };
    for (const [how, goOn] of Object.entries(goesOn)) {
      const end = async (change: Partial<typeof verdict>) => {
        Object.assign(verdict, { allowed: true, fits: true });
        changed = change;
        const runId = await goOn();
        assert.deepEqual(asked.splice(0), [args, args], `${how}: asked at the call and at the approved call`);
        const [record] = (await app.client.runs.tools({ params: { runId } })).body;
        assert.equal((await getRun(app.client, runId)).status, 'Completed');
        return [record?.succeeded, record?.authorizationDenied, ...toolTexts(app.simulator.lastRequest())];
      };
      assert.deepEqual(await end({ allowed: false }), [false, true, 'The till is closed.'], how);
      const invalid = 'The arguments do not fit: amount is above what is left today.';
      assert.deepEqual(await end({ fits: false }), [false, false, invalid], how);
      assert.deepEqual(done, [], how);
      assert.deepEqual((await end({}))[0], true, how);
      assert.deepEqual(done.splice(0), [args], how);
    }
  },
);

forEachDurableService('APPR-17 without a reason the model is told that the user declined', async (open) => {
  const app = await openApprovals(open);
  const { approvals } = await paused(app, ['wipe']);
  await answer(app, [{ requestId: approvals[0]?.requestId ?? '', approved: false }]);
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['Not approved: the user declined the call.']);
  assert.deepEqual(app.done, []);
});

forEachDurableService('RUN-5 RUN-30 a message beside the decisions follows them', async (open) => {
  const app = await openApprovals(open);
  const { approvals } = await paused(app, ['wipe']);
  const reply = await answer(app, [{ requestId: approvals[0]?.requestId ?? '', approved: true }], 'And thanks');
  assert.equal(reply.output, 'You said And thanks.');
  const roles = messagesOf(app.simulator.lastRequest()).map(({ role }) => role);
  assert.deepEqual(roles, ['user', 'assistant', 'tool', 'user']);
});

forEachDurableService('APPR-14 APPR-15 RUN-31 decisions that fit nothing are refused before any row', async (open) => {
  const app = await openApprovals(open);
  const { approvals } = await paused(app, ['pay'], ['wipe']);
  const [pay, wipe] = approvals.map(({ requestId }) => requestId) as [string, string];
  const before = await listRuns(app.client);
  const yes = (requestId: string) => ({ requestId, approved: true });
  const result = { callId: 'c', result: 'r' };
  const cases: readonly [string, AgentRunRequest, number, string][] = [
    ['unknown', { sessionId, approvals: [yes(pay), yes('nope')] }, 400, 'approval-unknown'],
    ['another session', { sessionId: 's-2', approvals: [yes(pay)] }, 400, 'approval-unknown'],
    ['one missing', { sessionId, approvals: [yes(pay)] }, 400, 'approvals-missing'],
    ['twice', { sessionId, approvals: [yes(pay), yes(pay)] }, 400, 'validation-failed'],
    ['no session', { approvals: [yes(pay)] }, 400, 'validation-failed'],
    ['both', { sessionId, approvals: [yes(pay)], toolResults: [result] }, 400, 'validation-failed'],
    [
      'remembered rejection',
      { sessionId, approvals: [{ requestId: pay, approved: false, remember: true }, yes(wipe)] },
      400,
      'validation-failed',
    ],
    ['results', { sessionId, toolResults: [result] }, 400, 'tool-call-unknown'],
    ['no message', { sessionId }, 400, 'message-required'],
  ];
  for (const stream of [true, false])
    for (const [what, body, status, code] of cases) {
      const problem = await refusal(start(app.client, 'helper', { ...body, stream }));
      assert.deepEqual([problem.status, problem.code], [status, code], what);
    }
  const queued = start(
    app.client,
    'helper',
    { sessionId, approvals: [yes(pay)] },
    { headers: { prefer: 'respond-async' } },
  );
  assert.equal((await refusal(queued)).code, 'not-for-queued-runs');
  assert.deepEqual(await listRuns(app.client), before);
  await answer(app, [yes(pay), yes(wipe)]);
  const again = await refusal(start(app.client, 'helper', { sessionId, approvals: [yes(pay), yes(wipe)] }));
  assert.deepEqual([again.status, again.code], [409, 'approval-already-decided']);
  assert.equal(app.done.length, 2, 'nothing ran twice');
});

forEachDurableService('APPR-16 RUN-33 a plain message voids what waits', async (open) => {
  const app = await openApprovals(open);
  const { approvals } = await paused(app, ['pay', { amount: 1 }], ['look']);
  const reply = await runJson(app.client, 'helper', { message: 'Never mind', sessionId });
  assert.equal(reply.output, 'You said Never mind.');
  const messages = messagesOf(app.simulator.lastRequest());
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'tool', 'user'],
  );
  assert.equal(messages[2]?.content, 'The call was not approved.');
  const late = start(app.client, 'helper', {
    sessionId,
    approvals: [{ requestId: approvals[0]?.requestId ?? '', approved: true }],
  });
  assert.equal((await refusal(late)).code, 'approval-already-decided');
  assert.deepEqual(
    app.done.map(({ name }) => name),
    ['look'],
  );
});

forEachDurableService('APPR-12 RUN-7 a run without a session fails the call and goes on', async (open) => {
  const app = await openApprovals(open);
  const reply = await runJson(app.client, 'helper', { message: calls(['pay'], ['look']) });
  assert.equal(reply.status, 'Completed');
  assert.match(toolTexts(app.simulator.lastRequest())[0] ?? '', /^approval-needs-session: /);
  assert.deepEqual(
    app.done.map(({ name }) => name),
    ['look'],
  );
});

forEachDurableService('APPR-5 TOOL-31 a called agent cannot ask', async (open) => {
  const local = { provider: 'local', model: 'any' };
  const app = await openApprovals(open, {
    agents: [{ name: 'boss', model: local, callableAgentNames: ['helper'] }],
  });
  const message = calls(['call_helper', { message: calls(['pay']) }]);
  const reply = await runJson(app.client, 'boss', { message, sessionId: 'boss-1' });
  assert.equal(reply.status, 'Completed');
  assert.match(reply.output ?? '', /approval-not-available/);
  assert.deepEqual(app.done, []);
  assert.deepEqual(await pendingOf(app.client), []);
  const requests = app.store.open().stores(sessionRequestStore);
  assert.deepEqual(await requests.list('default', 'boss-1'), []);
});

forEachDurableService(
  'APPR-2 authorization and validation come before approval, and again before the body',
  async (open) => {
    let allowed = false;
    const app = await openApprovals(open, { authorizer: { authorize: async () => ({ allowed, reason: 'Not you.' }) } });
    const denied = await paused(app, ['pay', { amount: 1 }]);
    assert.deepEqual([denied.status, denied.output], ['Completed', 'Not you.']);
    allowed = true;
    const invalid = await paused(app, ['pay', { amount: 'much' }]);
    assert.equal(invalid.status, 'Completed');
    assert.match(invalid.output ?? '', /do not fit/);
    const { approvals } = await paused(app, ['pay', { amount: 1 }]);
    allowed = false;
    await answer(app, [{ requestId: approvals[0]?.requestId ?? '', approved: true }]);
    assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['Not you.']);
    assert.deepEqual(app.done, []);
  },
);

forEachDurableService('APPR-19 decisions are audited before the tool runs', async (open) => {
  let entries = -1;
  let app: TestApp | null = null;
  const pay = {
    ...tool('pay', async () => {
      entries = app === null ? -1 : (await auditOf(app, 'approval.decide')).length;
      return 'paid';
    }),
    requiresApproval: true,
    inputSchema: { type: 'object' },
  };
  app = await openApprovals(open, { tools: [pay] });
  const { approvals } = await paused(app, ['pay', { amount: 250 }]);
  const reply = await answer(app, [{ requestId: approvals[0]?.requestId ?? '', approved: true }]);
  assert.equal(entries, 1);
  const [entry] = await auditOf(app, 'approval.decide');
  assert.equal(entry?.entity, `run:${reply.runId}`);
  const after = entry?.after;
  assert.deepEqual([after.decision, after.toolName], ['Approved', 'pay']);
  assert.match(String(after.argumentsHash), /^[0-9a-f]{64}$/);
});

forEachDurableService('APPR-19 without the audit trail nothing is decided', async (open) => {
  const app = await openApprovals(open);
  const { approvals } = await paused(app, ['pay']);
  const before = await listRuns(app.client);
  const accept = await app.store.refuse('audit entries');
  const approval = [{ requestId: approvals[0]?.requestId ?? '', approved: true }];
  const problem = await refusal(start(app.client, 'helper', { sessionId, approvals: approval }));
  assert.equal(problem.status, 503);
  assert.deepEqual(await listRuns(app.client), before);
  assert.deepEqual(app.done, []);
  await accept();
  assert.equal((await answer(app, approval)).status, 'Completed');
});

forEachDurableService(
  'APPR-9 RUN-42 a paused run is closed: it cannot be cancelled, and its log ends',
  async (open) => {
    const app = await openApprovals(open);
    const { runId } = await paused(app, ['pay']);
    const problem = await refusal(app.client.runs.cancel({ params: { runId } }));
    assert.deepEqual([problem.status, problem.code], [409, 'run-finished']);
    const before = await getRun(app.client, runId);
    await runJson(app.client, 'helper', { message: 'Go on', sessionId });
    assert.deepEqual(await getRun(app.client, runId), before);
  },
);

forEachDurableService('RUN-18 RUN-20 the answer of a paused run is replayed by its idempotency key', async (open) => {
  const app = await openApprovals(open);
  const body = { message: calls(['pay', { amount: 2 }]), sessionId };
  const headers = { 'idempotency-key': 'k-1' };
  const { headers: _first, ...first } = await runJson(app.client, 'helper', body, { headers }).catch(() => {
    throw new Error('the first answer failed');
  });
  const { headers: replayed, ...second } = await runJson(app.client, 'helper', body, { headers });
  assert.deepEqual(second, first);
  assert.equal(replayed['idempotency-replayed'], 'true');
  assert.equal((await listRuns(app.client)).length, 1);
});

forEachDurableService('APPR-22 TOOL-25 arguments are hidden where payloads are not recorded', async (open) => {
  const app = await openApprovals(open, { service: { RunRecording: { RecordToolPayloads: false } } });
  const reply = await paused(app, ['pay', { amount: 7654321.5 }]);
  assert.equal(reply.approvals[0]?.arguments, null);
  const events = await followToEnd(app.client, reply.runId);
  assert.doesNotMatch(JSON.stringify(events), /7654321/);
  await answer(app, [{ requestId: reply.approvals[0]?.requestId ?? '', approved: true }]);
  assert.deepEqual(app.done[0]?.arguments, { amount: 7654321.5 });
});

forEachDurableService('RUN-27 RUN-32 long arguments are cut in events, whole in the answer', async (open) => {
  const app = await openApprovals(open, { service: { RunRecording: { MaxPayloadLength: 20 } } });
  const note = 'x'.repeat(200);
  const reply = await paused(app, ['wipe', { note }]);
  assert.deepEqual(reply.approvals[0]?.arguments, { note });
  const asked = (await followToEnd(app.client, reply.runId)).find(({ type }) => type === 'approval.requested');
  assert.equal(asked?.['truncated'], true);
  assert.equal(asked?.['arguments'].length, 20);
});

forEachDurableService('TOOL-21 calls side by side are asked for in the model order', async (open) => {
  const app = await openApprovals(open, {
    agent: { model: { provider: 'local', model: 'any', allowConcurrentToolCalls: true } },
  });
  const reply = await paused(app, ['wipe'], ['look'], ['pay']);
  assert.deepEqual(
    reply.approvals.map(({ toolName }) => toolName),
    ['wipe', 'pay'],
  );
  const yes = reply.approvals.map(({ requestId }) => ({ requestId, approved: true }));
  await answer(app, yes);
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['wipe done', 'look done', 'pay done']);
});
