import assert from 'node:assert/strict';
import type { ApprovalCall, ApprovalPolicyAnswer } from '../../../src/engine/control/approval-gate.ts';
import { approvalStore } from '../../../src/features/approvals/approvals.store.ts';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue, followToEnd, getRun, listRuns, refusal, runJson, runStream, start, tool } from '../runs/run-calls.ts';
import { calls, decide, messagesOf, openApprovals, pendingOf, queueWaiting, toolTexts } from './approval-world.ts';

const sessionId = 's-1';

forEachService('APPR-3 APPR-4 the policy of the host decides before rules and marks, for every call', async (open) => {
  let answer: () => Promise<ApprovalPolicyAnswer> = async () => 'Undecided';
  const asked: ApprovalCall[] = [];
  const policy = {
    decide: (call: ApprovalCall) => {
      asked.push(call);
      return answer();
    },
  };
  const app = await openApprovals(open, { module: { approvalPolicy: policy } });
  const statusOf = async (name: string) =>
    (await runJson(app.client, 'helper', { message: calls([name]), sessionId })).status;
  assert.deepEqual([await statusOf('look'), await statusOf('pay')], ['Completed', 'AwaitingApproval']);
  assert.deepEqual(
    asked.map(({ toolName, agentName, sessionId: session, arguments: args }) => [toolName, agentName, session, args]),
    [
      ['look', 'helper', sessionId, {}],
      ['pay', 'helper', sessionId, {}],
    ],
  );
  answer = async () => 'NotRequired';
  assert.equal(await statusOf('pay'), 'Completed');
  await app.client.approvalRules.create({ body: { toolName: 'pay' } });
  answer = async () => 'Required';
  assert.deepEqual([await statusOf('pay'), await statusOf('look')], ['AwaitingApproval', 'AwaitingApproval']);
  answer = async () => 'Undecided';
  assert.equal(await statusOf('pay'), 'Completed', 'the rule');
  answer = async () => {
    throw new Error('No answer.');
  };
  assert.equal(await statusOf('pay'), 'AwaitingApproval');
  answer = async () => 'Maybe' as ApprovalPolicyAnswer;
  assert.equal(await statusOf('look'), 'AwaitingApproval');
  assert.equal(app.done.length, 3);
});

forEachService('APPR-13 a presenter that throws, is late or answers nonsense presents nothing', async (open) => {
  let stopped = false;
  const present = async (call: ApprovalCall, signal: AbortSignal) => {
    if (call.arguments['amount'] === 1) throw new Error('No presentation.');
    if (call.arguments['amount'] === 2) return 'nonsense' as never;
    if (call.arguments['amount'] === 3) return { entityType: 'x'.repeat(500), entityId: 7, message: 'Pay.' } as never;
    const late = Promise.withResolvers<null>();
    signal.addEventListener('abort', () => {
      stopped = true;
      late.resolve(null);
    });
    return late.promise;
  };
  const app = await openApprovals(open, { module: { approvalPresenters: [{ toolName: 'pay', present }] } });
  const shown = async (amount: number) =>
    (await runJson(app.client, 'helper', { message: calls(['pay', { amount }]), sessionId })).approvals[0]
      ?.presentation;
  assert.equal(await shown(1), null);
  assert.equal(await shown(2), null);
  assert.deepEqual(await shown(3), {
    entityType: 'x'.repeat(128),
    entityId: null,
    entityName: null,
    message: 'Pay.',
  });
  assert.equal(await shown(4), null);
  assert.ok(stopped);
});

forEachService('APPR-34 a run that was queued behind one that pauses waits its turn', async (open) => {
  const held = Promise.withResolvers<void>();
  const hold = tool('hold', async () => {
    await held.promise;
    return 'held';
  });
  const app = await openApprovals(open, { more: [hold] });
  const message = calls(['hold'], ['pay', { amount: 5 }]);
  const first = await enqueue(app.client, 'helper', { message, sessionId });
  const later = await enqueue(app.client, 'helper', { message: 'Later', sessionId, concurrency: 'Enqueue' });
  held.resolve();
  await followToEnd(app.client, first);
  const [row] = await pendingOf(app.client);
  assert.equal((await getRun(app.client, later)).status, 'Queued');
  const { continuationRunId } = await decide(app.client, row?.id ?? '', true);
  await followToEnd(app.client, continuationRunId ?? '');
  assert.equal((await followToEnd(app.client, later)).at(-1)?.type, 'run.completed');
  assert.equal(app.done.length, 1);
  assert.ok(toolTexts(app.simulator.lastRequest()).length === 0, 'the message came after the continuation');
});

forEachService(
  'APPR-16 after a continuation that failed the model is told what is known of the calls',
  async (open) => {
    let failing = false;
    const app = await openApprovals(open, {
      simulator: {
        respond: (request) => {
          const messages = messagesOf(request);
          const last = messages.at(-1);
          if (failing) return { fault: { kind: 'status', status: 400 } };
          if (last?.role === 'user' && !messages.some(({ role }) => role === 'tool'))
            return { answer: { toolCalls: [{ id: 'c-1', name: 'pay', arguments: '{"amount":5}' }] } };
          return { answer: { text: ['Done.'] } };
        },
      },
    });
    const { approvals } = await runJson(app.client, 'helper', { message: 'Pay', sessionId });
    failing = true;
    const failed = await runStream(app.client, 'helper', {
      sessionId,
      approvals: [{ requestId: approvals[0]?.requestId ?? '', approved: true }],
    });
    assert.equal(failed.events.at(-1)?.type, 'run.failed');
    assert.equal(app.done.length, 1);
    failing = false;
    const reply = await runJson(app.client, 'helper', { message: 'And now?', sessionId });
    assert.equal(reply.status, 'Completed');
    const told = messagesOf(app.simulator.lastRequest()).filter(({ role }) => role === 'tool');
    assert.deepEqual(
      told.map(({ content }) => content),
      ['pay done'],
    );
    assert.equal(app.done.length, 1, 'nothing ran twice');
  },
);

const clientTool = {
  name: 'locate',
  description: 'Where the user is',
  inputSchema: { type: 'object' },
  runsOnClient: true as const,
};

forEachService('TOOL-33 TOOL-34 RUN-32 a client-side call is answered by the next run, once', async (open) => {
  const app = await openApprovals(open, { more: [clientTool as never] });
  const first = await runJson(app.client, 'helper', { message: calls(['locate'], ['look']), sessionId });
  assert.equal(first.status, 'AwaitingInput');
  const callId = first.clientToolCalls[0]?.callId ?? '';
  const toolResults = [{ callId, result: 'Bern' }];
  const second = await runJson(app.client, 'helper', { sessionId, toolResults });
  assert.equal(second.status, 'Completed');
  assert.deepEqual(toolTexts(app.simulator.lastRequest()), ['Bern', 'look done']);
  const again = await refusal(start(app.client, 'helper', { sessionId, toolResults }));
  assert.deepEqual([again.status, again.code], [409, 'tool-call-answered']);
  assert.equal((await listRuns(app.client)).length, 2);
});

forEachService('RUN-39 the host is asked about an answer with the run that it goes on from', async (open) => {
  const asked: (string | null)[] = [];
  const app = await openApprovals(open, {
    module: {
      runAuthorization: {
        authorize: async ({ action, runId }) => {
          if (action === 'Start') asked.push(runId ?? null);
          return { allowed: asked.length < 3 };
        },
      },
    },
  });
  const first = await runJson(app.client, 'helper', { message: calls(['pay']), sessionId });
  const approvals = [{ requestId: first.approvals[0]?.requestId ?? '', approved: true }];
  await runJson(app.client, 'helper', { sessionId, approvals });
  assert.deepEqual(asked, [null, first.runId]);
});

forEachDurableService('APPR-38 the scan completes what settled while the queue was off', async (open) => {
  const Approvals = { DefaultExpiration: '30m', ScanInterval: '50ms' };
  const clock = testClock({ at: Date.now() - 3_600_000 });
  const first = await openApprovals(open, { clock, service: { Approvals } });
  const { runId, rows } = await queueWaiting(first, sessionId, ['pay', { amount: 5 }], ['wipe']);
  const id = rows[0]?.id ?? '';
  await decide(first.client, id, true);
  await first.close();
  const { folder } = first;
  const off = await openApprovals(open, { folder, service: { Approvals, Scheduling: { Enabled: false } } });
  const approvals = off.store.open().stores(approvalStore);
  const states = async () => (await approvals.ofRun(runId)).map(({ status }) => status).toString();
  await eventually('the scan without the queue', async () => (await states()) === 'Approved,Expired');
  assert.equal((await off.client.approvals.get({ params: { id } })).body.continuationRunId, null);
  await off.close();
  const app = await openApprovals(open, { folder, service: { Approvals } });
  const next = await eventually(
    'the run that goes on',
    async () => (await app.client.approvals.get({ params: { id } })).body.continuationRunId,
  );
  assert.equal((await followToEnd(app.client, next)).at(-1)?.type, 'run.completed');
  assert.deepEqual(
    app.done.map(({ name }) => name),
    ['pay'],
  );
});

forEachService('APPR-40 deleting the session expires its rows, and nothing goes on', async (open) => {
  const app = await openApprovals(open);
  const { rows } = await queueWaiting(app, sessionId, ['pay'], ['wipe']);
  await decide(app.client, rows[0]?.id ?? '', true);
  await app.client.sessions.remove({ params: { sessionId } });
  const states = await Promise.all(rows.map(({ id }) => app.client.approvals.get({ params: { id } })));
  assert.deepEqual(
    states.map(({ body }) => body.status),
    ['Approved', 'Expired'],
  );
  assert.equal((await listRuns(app.client)).length, 1);
  const late = app.client.approvals.decide({ params: { id: rows[1]?.id ?? '' }, body: { approved: true } });
  assert.equal((await refusal(late)).code, 'approval-expired');
  assert.deepEqual(app.done, []);
});
