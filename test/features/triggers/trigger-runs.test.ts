import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { callsTools, followToEnd, getRun, listRuns, runJson, tool, typesOf } from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, outcomeOf, saveTrigger, sendCall } from './trigger-world.ts';

forEachService(
  'TRIGGER-23 TRIGGER-25 a call starts a run of its own: labels say of which trigger, and of no user',
  async (open) => {
    const attributed: unknown[] = [];
    const app = await openTriggers(open, {
      module: {
        attributionResolver: {
          async resolve({ agentName }) {
            attributed.push(agentName);
            return { userId: 'somebody', labels: { team: 'a' } };
          },
        },
      },
    });
    await saveTrigger(app);
    const body = JSON.stringify({ userId: 'eve', labels: { source: 'me' }, parameters: { a: 'b' }, lane: 'fast' });
    const runId = await acceptedRun(app, { body });
    const events = await followToEnd(app.client, runId);
    assert.deepEqual(typesOf(events).slice(0, 2), ['run.queued', 'run.started']);
    assert.equal(typesOf(events).at(-1), 'run.completed');
    const run = await getRun(app.client, runId);
    assert.deepEqual(
      [run.status, run.agentName, run.kind, run.userId, run.labels, run.jobId],
      ['Completed', 'helper', 'Agent', null, { source: 'trigger', trigger: 'ticket' }, runId],
    );
    assert.deepEqual(attributed, [], 'what has arrived decides, and not who asks');
    const { job } = (await app.client.jobs.get({ params: { id: runId } })).body;
    assert.deepEqual([job.handlerKey, job.lane, job.totalItems], ['acp.agent-run', 'default', 0]);
    assert.deepEqual(
      (await listRuns(app.client, { label: 'trigger:ticket' })).map(({ id }) => id),
      [runId],
    );
    const { body: input } = await app.client.runs.input({ params: { runId } });
    assert.match(JSON.stringify(input), /eve/, 'the body is the message');
  },
);

forEachService('TRIGGER-24 each call opens a session of its own, which a person can go on with', async (open) => {
  const app = await openTriggers(open);
  await saveTrigger(app);
  const runs = [await acceptedRun(app), await acceptedRun(app)];
  for (const runId of runs) await followToEnd(app.client, runId);
  const sessions = await Promise.all(runs.map(async (runId) => (await getRun(app.client, runId)).sessionId));
  assert.equal(new Set(sessions).size, 2);
  const [first] = sessions;
  assert.match(first ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  const next = await runJson(app.client, 'helper', { message: 'And now?', sessionId: first ?? '' });
  assert.equal(next.sessionId, first);
  const { body: session } = await app.client.sessions.get({ params: { sessionId: first ?? '' } });
  assert.equal(session.messages?.length ?? 4, 4, 'a store in memory shows none');
});

forEachService('TRIGGER-24 an approval that the run stops on is decided, and the run goes on', async (open) => {
  const paid: unknown[] = [];
  const app = await openTriggers(open, {
    tools: [tool('pay', async () => paid.push('paid'), { requiresApproval: true })],
    script: [
      { when: { tool: 'pay' }, reply: { text: 'Done.' } },
      { reply: { toolCalls: [{ name: 'pay', arguments: {} }] } },
    ],
    agents: [{ name: 'helper', toolNames: ['pay'] }],
  });
  await saveTrigger(app);
  const runId = await acceptedRun(app);
  const pending = await eventually('the call waits for a person', async () => {
    const [row] = (await app.client.approvals.list({ query: { agentName: 'helper' } })).body;
    return row;
  });
  assert.equal(pending.runId, runId);
  assert.equal((await getRun(app.client, runId)).status, 'AwaitingApproval');
  await app.client.approvals.decide({ params: { id: pending.id }, body: { approved: true } });
  const continuation = await eventually('another run goes on', async () =>
    (await listRuns(app.client)).find(({ id, status }) => id !== runId && status === 'Completed'),
  );
  assert.deepEqual(paid, ['paid']);
  assert.deepEqual(continuation.labels, { source: 'trigger', trigger: 'ticket' });
});

forEachService('TRIGGER-24 where sessions need an owner those of triggers are nobody’s', async (open) => {
  const app = await openTriggers(open, {
    service: { SessionOwnership: { Enabled: true, RequireAuthenticatedOwner: true, RefuseUnownedSessions: true } },
  });
  await saveTrigger(app);
  const runId = await acceptedRun(app);
  assert.equal((await followToEnd(app.client, runId)).at(-1)?.type, 'run.completed');
  assert.equal((await getRun(app.client, runId)).userId, null);
});

forEachService('TRIGGER-25 a trigger has no permission that a tool could need', async (open) => {
  const told: string[] = [];
  const app = await openTriggers(open, {
    tools: [
      tool('look', async () => told.push('looked')),
      tool('drop', async () => told.push('dropped'), { requiredPermission: 'admin' }),
    ],
    script: callsTools('look', 'drop'),
    agents: [{ name: 'helper', toolNames: ['look', 'drop'] }],
  });
  await saveTrigger(app);
  const events = await followToEnd(app.client, await acceptedRun(app));
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.deepEqual(told, ['looked']);
});

forEachService('TRIGGER-26 the last accepted call is shown, and no other', async (open) => {
  const app = await openTriggers(open, { service: { Scheduling: { RunWorker: false } } });
  app.clock.stand();
  await saveTrigger(app);
  const last = async () => (await app.client.triggers.get({ params: { name: 'ticket' } })).body.lastAcceptedAt;
  assert.equal(await outcomeOf(app, { body: ' ' }), '400 trigger-payload-invalid');
  assert.equal(await outcomeOf(app, { secret: 'wrong' }), '401 unauthenticated');
  assert.equal(await last(), null);
  await acceptedRun(app, { id: 'evt-1' });
  const first = await last();
  assert.equal(first, new Date(app.clock.now()).toISOString());
  await app.clock.advance(5000);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed');
  assert.equal(await last(), first);
  await acceptedRun(app);
  assert.equal(await last(), new Date(app.clock.now()).toISOString());
});

forEachService('TRIGGER-27 guards and emergency stops hold for runs of triggers', async (open) => {
  const app = await openTriggers(open, {
    service: { ContentGuard: { Pattern: { DeniedTerms: ['forbidden word'] } } },
  });
  await saveTrigger(app);
  const blocked = await followToEnd(app.client, await acceptedRun(app, { body: 'a forbidden word' }));
  assert.equal(blocked.at(-1)?.type, 'run.failed');
  await app.client.emergency.stop({ body: { scope: 'Agent', agentName: 'helper' } });
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '503 emergency-stopped');
  await app.client.emergency.resume({ body: { scope: 'Agent', agentName: 'helper' } });
  assert.equal((await sendCall(app, { id: 'evt-1' })).status, 202, 'what was refused has left no reservation');
});

forEachService('TRIGGER-27 the budget of a tree holds for a run of a trigger and those below it', async (open) => {
  const [input, output] = [30, 10];
  const calls = (name: string, args: object = {}) => ({
    reply: { toolCalls: [{ name, arguments: args }], usage: { inputTokens: input, outputTokens: output } },
  });
  const app = await openTriggers(open, {
    service: { AgentGraph: { MaxTotalTokens: 100 } },
    tools: [tool('look', async () => 'seen')],
    script: [{ when: { model: 'demo-1' }, ...calls('call_child', { message: 'Go' }) }, calls('look')],
    agents: [
      { name: 'child', model: { provider: 'demo', model: 'child-1' }, toolNames: ['look'] },
      { name: 'helper', callableAgentNames: ['child'] },
    ],
  });
  await saveTrigger(app);
  const runId = await acceptedRun(app);
  const end = (await followToEnd(app.client, runId)).at(-1);
  assert.deepEqual([end?.type, end?.['error'].type], ['run.failed', 'budget_exceeded']);
  const [child, ...more] = await listRuns(app.client, { parentRunId: runId });
  assert.deepEqual([child?.status, child?.error?.type, more.length], ['Failed', 'budget_exceeded', 0]);
  assert.equal((await getRun(app.client, runId)).treeUsage?.totalTokens, 120);
});
