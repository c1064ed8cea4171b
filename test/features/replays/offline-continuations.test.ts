import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { eventually } from '../../support/eventually.ts';
import { calls, decide, openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { says } from '../runs/chat-requests.ts';
import {
  callsTools,
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  readUntil,
  refusal,
  runJson,
  runStream,
  stream,
  tool,
} from '../runs/run-calls.ts';
import { replayTest } from './replayed-file.ts';

const sessionId = 's-1';

replayTest('RUN-30 a run that waits, and the runs that go on with it, replay identically', async (open, replays) => {
  const app = await openApprovals(open);
  const answer = async (first: string, message?: string) => {
    const { runId, approvals } = await runJson(app.client, 'helper', {
      message: calls(['pay', { amount: 5 }], ['look'], ['wipe']),
      sessionId,
    });
    const [pay, wipe] = approvals.map(({ requestId }) => requestId);
    const decisions = [
      { requestId: wipe ?? '', approved: false, reason: 'Too dangerous.' },
      { requestId: pay ?? '', approved: true },
    ];
    const body = { sessionId, approvals: decisions, ...(message === undefined ? {} : { message }) };
    const second = await runJson(app.client, 'helper', body);
    assert.equal((await getRun(app.client, second.runId)).continuedFromRunId, runId, first);
    return [runId, second.runId];
  };
  await replays.identical(app, ...(await answer('alone')), ...(await answer('with a message', 'And thanks')));
  const abandoned = await runJson(app.client, 'helper', { message: calls(['pay']), sessionId });
  const plain = await runJson(app.client, 'helper', { message: 'Never mind', sessionId });
  await replays.identical(app, abandoned.runId, plain.runId);
});

replayTest('RUN-30 a continuation that failed has its results in its own record', async (open, replays) => {
  const app = await openApprovals(open);
  const { approvals } = await runJson(app.client, 'helper', { message: calls(['pay'], ['wipe']), sessionId });
  const [pay, wipe] = approvals.map(({ requestId }) => requestId);
  app.simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
  const decisions = [
    { requestId: pay ?? '', approved: true },
    { requestId: wipe ?? '', approved: false, reason: 'No.' },
  ];
  await refusal(runJson(app.client, 'helper', { sessionId, approvals: decisions }));
  const [failed] = await listRuns(app.client);
  assert.equal(failed?.status, 'Failed');
  const after = await runJson(app.client, 'helper', { message: 'What happened?', sessionId });
  await replays.identical(app, failed?.id ?? '', after.runId);
});

replayTest('RUN-30 results that may not be recorded whole are missing, and said so', async (open, replays) => {
  const app = await openApprovals(open, { service: { RunRecording: { RecordToolPayloads: false } } });
  const { approvals } = await runJson(app.client, 'helper', { message: calls(['pay']), sessionId });
  app.simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
  const decisions = [{ requestId: approvals[0]?.requestId ?? '', approved: true }];
  await refusal(runJson(app.client, 'helper', { sessionId, approvals: decisions }));
  const [failed] = await listRuns(app.client);
  const kept = await app.store
    .open()
    .stores(runStore)
    .modelCalls('default', failed?.id ?? '');
  assert.ok(kept !== null && !JSON.stringify(kept).includes('pay done'));
  const report = await replays.replay(app, failed?.id ?? '');
  assert.deepEqual(
    [report.result, report.divergences[0]?.detail],
    ['missing', 'Results of calls that an earlier run had left open were not recorded whole.'],
  );
});

replayTest(
  'TOOL-33 results of client-side tools replay, also from a run that only asked for them',
  async (open, replays) => {
    const { execute: _none, ...camera } = tool('camera', async () => '', { runsOnClient: true });
    const app = await openApprovals(open, { more: [camera] });
    const first = await runJson(app.client, 'helper', { message: calls(['camera'], ['look']), sessionId });
    assert.equal(first.status, 'AwaitingInput');
    const results = (callId: string | undefined) => [{ callId: callId ?? '', result: 'a picture' }];
    const second = await runJson(app.client, 'helper', {
      sessionId,
      toolResults: results(first.clientToolCalls[0]?.callId),
    });
    const both = await runJson(app.client, 'helper', { message: calls(['pay'], ['camera']), sessionId });
    const decided = await runJson(app.client, 'helper', {
      sessionId,
      approvals: [{ requestId: both.approvals[0]?.requestId ?? '', approved: true }],
    });
    assert.equal(decided.status, 'AwaitingInput', 'it closes before any model call');
    const last = await runJson(app.client, 'helper', {
      sessionId,
      toolResults: results(decided.clientToolCalls[0]?.callId),
    });
    assert.equal(last.status, 'Completed');
    await replays.identical(app, first.runId, second.runId, both.runId, decided.runId, last.runId);
  },
);

replayTest('APPR-20 a run that went on from the mailbox replays identically', async (open, replays) => {
  const app = await openApprovals(open);
  const { runId, rows } = await queueWaiting(app, sessionId, ['pay'], ['wipe']);
  for (const [index, row] of rows.entries()) await decide(app.client, row.id, index === 0);
  const { id: next } = await eventually('the run goes on', async () =>
    (await listRuns(app.client, { sessionId })).find(
      (run) => run.continuedFromRunId === runId && run.status === 'Completed',
    ),
  );
  await replays.identical(app, runId, next);
});

replayTest('RUN-41 a canceled run replays up to where it was stopped', async (open, replays) => {
  const gate = new Gate();
  const app = await open({
    simulator: {},
    tools: [
      tool('wait', async (_args, { signal }) => {
        await gate.pass(signal);
        return 'waited';
      }),
    ],
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' }, toolNames: ['wait'] }],
  });
  const { client, simulator } = app;
  simulator.enqueue({ answer: { text: ['Once', ' upon'] }, fault: { kind: 'stall', after: 2 } });
  const inCall = await stream(client, 'helper', { message: 'Hi', sessionId });
  const frames = inCall.frames[Symbol.asyncIterator]();
  await readUntil(frames, 'message.delta');
  await client.runs.cancel({ params: { runId: inCall.runId } });
  await readUntil(frames, 'run.canceled');
  simulator.enqueue({ answer: { toolCalls: [{ id: 'c', name: 'wait', arguments: '{}' }] } });
  const inTool = await stream(client, 'helper', { message: 'Hi', sessionId });
  await gate.reached;
  await client.runs.cancel({ params: { runId: inTool.runId } });
  await followToEnd(client, inTool.runId);
  const after = await runJson(client, 'helper', { message: 'Go on', sessionId });
  await replays.identical(app, inCall.runId, inTool.runId, after.runId);
});

replayTest('RUN-49 a run that its budget ended replays up to there', async (open, replays) => {
  const app = await open({
    service: { AgentGraph: { MaxTotalTokens: 10 } },
    tools: [tool('look', async () => 'seen')],
    script: [{ reply: { toolCalls: [{ name: 'look', arguments: {} }], usage: { inputTokens: 9, outputTokens: 9 } } }],
    agents: [{ name: 'helper', toolNames: ['look'] }],
  });
  await refusal(runJson(app.client, 'helper', 'Hi'));
  const [run] = await listRuns(app.client);
  assert.equal(run?.error?.type, 'budget_exceeded');
  await replays.identical(app, run?.id ?? '');
});

replayTest('TOOL-20 a run that gave up on its tools gives up again', async (open, replays) => {
  const app = await open({
    service: { Tools: { MaxConsecutiveErrors: 1 } },
    tools: [
      tool('shaky', async () => {
        throw new Error('no');
      }),
    ],
    script: [{ reply: { toolCalls: [{ name: 'shaky', arguments: {} }] } }],
    agents: [{ name: 'helper', toolNames: ['shaky'] }],
  });
  await refusal(runJson(app.client, 'helper', 'Hi'));
  const [run] = await listRuns(app.client);
  assert.equal(run?.error?.type, 'tool_error');
  await replays.identical(app, run?.id ?? '');
});

replayTest('RUN-17 a retried run is compared in its last attempt; earlier ones are missing', async (open, replays) => {
  const app = await open({
    service: { AsyncRun: { MaxAttempts: 3 }, Scheduling: { PollInterval: '1s' }, Tools: { MaxConsecutiveErrors: 0 } },
    tools: [
      tool('shaky', async () => {
        throw new Error('no');
      }),
    ],
    script: callsTools('shaky'),
    agents: [{ name: 'helper', toolNames: ['shaky'] }],
  });
  const runId = await enqueue(app.client, 'helper', 'Hi');
  await eventually('the job is back in line', async () => {
    const { status, attempt } = (await app.client.jobs.get({ params: { id: runId } })).body.job;
    return status === 'Pending' && attempt === 1;
  });
  await app.store.open().stores(jobStore).due(runId, app.clock.now());
  await followToEnd(app.client, runId);
  const report = await replays.replay(app, runId);
  assert.deepEqual(
    report.runs[0]?.steps.map(({ number, result }) => [number, result]),
    [
      [1, 'missing'],
      [2, 'identical'],
    ],
  );
  assert.equal(report.runs[0]?.outcome.result, 'identical');
});

replayTest('RUN-76 RUN-77 a run that continues a lost one replays from where it went on', async (open, replays) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  const gate = new Gate();
  let isFirst = true;
  const setup = {
    folder,
    service: {
      RunReconciliation: { Enabled: true },
      RunContinuation: { Enabled: true, MaxAttempts: 2 },
      Scheduling: { PollInterval: '1s' },
    },
    tools: [
      tool('look', async () => 'seen'),
      tool('wait', async (_args, { signal }) => {
        if (isFirst) await gate.pass(signal);
        return 'waited';
      }),
    ],
    script: [
      { when: { tool: 'wait' }, reply: { text: 'Over: {{last}}' } },
      {
        when: { tool: 'look' },
        reply: {
          toolCalls: [
            { name: 'look', arguments: {} },
            { name: 'wait', arguments: {} },
          ],
        },
      },
      { reply: { toolCalls: [{ name: 'look', arguments: {} }] } },
    ],
  };
  const first = await open({ ...setup, agents: [{ name: 'helper', toolNames: ['look', 'wait'] }] });
  const lost = await stream(first.client, 'helper', { message: 'Hi', sessionId });
  await gate.reached;
  await first.close();
  isFirst = false;
  const second = await open(setup);
  const { id: next } = await eventually('the run goes on', async () =>
    (await listRuns(second.client, { sessionId })).find(
      (run) => run.continuedFromRunId === lost.runId && run.status === 'Completed',
    ),
  );
  const report = await replays.replay(second, next);
  assert.deepEqual(
    report.runs[0]?.steps.map(({ number, result }) => [number, result]),
    [[3, 'identical']],
  );
  await replays.identical(second, next, lost.runId);
});

replayTest(
  'RUN-8 turns of one session that met each other replay with the history that each saw',
  async (open, replays) => {
    const app = await open({
      simulator: {},
      agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
    });
    await runJson(app.client, 'helper', { message: 'One', sessionId });
    app.simulator.enqueue({ answer: { text: ['Once', ' upon'] }, fault: { kind: 'stall', after: 2 } });
    const stalled = await stream(app.client, 'helper', { message: 'Two', sessionId });
    const frames = stalled.frames[Symbol.asyncIterator]();
    await readUntil(frames, 'message.delta');
    app.simulator.enqueue(says('Three it is.'));
    const third = await runStream(app.client, 'helper', { message: 'Three', sessionId, concurrency: 'Rollback' });
    await readUntil(frames, 'run.canceled');
    await replays.identical(app, stalled.runId, third.runId);
  },
);
