import assert from 'node:assert/strict';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { enqueue, followToEnd, Gate, getRun, listRuns, refusal, runJson, start, tool } from '../runs/run-calls.ts';

const tokenOf = 'a-shared-token-of-the-host';

/** Writes once, then calls out and hangs: what a stop finds in the middle of things. */
const busySetup = (gate: Gate, landed: string[]) => ({
  tools: [
    tool('note', async () => landed.push('note'), { effect: 'Write' }),
    tool('look', async () => 'nothing', { effect: 'Read' }),
    tool(
      'pay',
      async (_args, { signal }) => {
        await gate.pass(signal);
        return landed.push('pay');
      },
      { effect: 'External' },
    ),
  ],
  script: [
    {
      when: { message: 'busy', call: 1 },
      reply: { toolCalls: ['look', 'note'].map((name) => ({ name, arguments: {} })) },
    },
    { when: { message: 'busy', call: 2 }, reply: { toolCalls: [{ name: 'pay', arguments: {} }] } },
    { reply: { text: 'Done.' } },
  ],
  agents: [{ name: 'clerk', toolNames: ['note', 'look', 'pay'] }, { name: 'other' }],
});

const stop = (app: Pick<TestApp, 'client'>, body: Parameters<TestApp['client']['emergency']['stop']>[0]['body']) =>
  app.client.emergency.stop({ body }).then((reply) => reply.body);
const resume = (app: Pick<TestApp, 'client'>, body: Parameters<TestApp['client']['emergency']['resume']>[0]['body']) =>
  app.client.emergency.resume({ body }).then((reply) => reply.body);

forEachDurableService(
  'a stop cancels what runs, says what had landed, holds the queue and refuses the rest',
  async (open) => {
    const gate = new Gate();
    const landed: string[] = [];
    const app = await open({ ...busySetup(gate, landed), service: { Scheduling: { MaxConcurrentJobs: 1 } } });
    const inFlight = start(app.client, 'clerk', { message: 'busy', stream: false }).then(
      () => assert.fail('the run was to be canceled'),
      (error: unknown) => error as Error,
    );
    await gate.reached;
    const queued = await enqueue(app.client, 'clerk', 'later');
    const before = await followToEnd(app.client, queued);
    assert.equal(before.at(-1)?.type, 'run.completed', 'the queue works');

    const result = await stop(app, { scope: 'Agent', agentName: 'clerk', reason: 'it pays twice' });
    assert.equal((await inFlight).name, 'ProblemError');
    assert.deepEqual([result.stop.scope, result.stop.tenantId, result.stop.agentName], ['Agent', 'default', 'clerk']);
    const [run, ...others] = result.runs;
    assert.deepEqual(others, []);
    assert.deepEqual([run?.agentName, run?.ended], ['clerk', true]);
    // A reading call is no effect; the one under way is not said to have failed.
    assert.deepEqual(
      run?.effects.map(({ toolName, effect, state }) => [toolName, effect, state]),
      [
        ['note', 'Write', 'Landed'],
        ['pay', 'External', 'Unknown'],
      ],
    );
    assert.deepEqual(landed, ['note']);
    assert.equal((await getRun(app.client, run?.runId ?? '')).status, 'Canceled');

    const refused = await refusal(start(app.client, 'clerk', { message: 'Hi', stream: false }));
    assert.deepEqual([refused.status, refused.code], [503, 'emergency-stopped']);
    assert.equal(refused['retryAfterMs'], 60_000);
    assert.equal((await refusal(start(app.client, 'clerk', 'Hi'))).code, 'emergency-stopped');
    assert.equal((await refusal(enqueue(app.client, 'clerk', 'Hi'))).code, 'emergency-stopped');
    const replay = app.client.replays.create({ params: { runId: queued }, body: {} });
    assert.equal((await refusal(replay)).code, 'emergency-stopped');
    assert.equal((await listRuns(app.client, { status: 'Queued' })).length, 0);
    assert.equal((await runJson(app.client, 'other', 'Hi')).output, 'Done.', 'the others go on');

    const again = await stop(app, { scope: 'Agent', agentName: 'clerk' });
    assert.deepEqual([again.stop, again.runs], [result.stop, []], 'a second stop is the first');
    const { resumed, inForce } = await resume(app, { scope: 'Agent', agentName: 'clerk' });
    assert.deepEqual([resumed.map(({ id }) => id), inForce], [[result.stop.id], []]);
    assert.equal((await runJson(app.client, 'clerk', 'Hi')).output, 'Done.');
    assert.equal((await refusal(resume(app, { scope: 'Agent', agentName: 'clerk' }))).code, 'not-found');
    const entries = (await trail(app)).filter(({ action }) => action.startsWith('emergency.'));
    assert.deepEqual(
      entries.map(({ action, after }) => [action, after.reason, after.resumedAt === null]),
      [
        ['emergency.stop', 'it pays twice', true],
        ['emergency.resume', 'it pays twice', false],
      ],
    );
  },
);

forEachDurableService(
  'effects are those of calls that were made; one that was too late may still land',
  async (open) => {
    const gate = new Gate();
    const app = await open({
      tools: [
        tool(
          'pay',
          async (_args, { signal }) => {
            await gate.pass(signal);
            return 'paid';
          },
          { effect: 'External' },
        ),
        tool('ship', async () => 'sent', { effect: 'Write', inputSchema: { type: 'object', required: ['to'] } }),
        tool('book', () => new Promise(() => undefined), { effect: 'Destructive', timeoutMs: 20 }),
      ],
      script: [
        {
          when: { message: 'busy', call: 1 },
          reply: { toolCalls: ['ship', 'book'].map((name) => ({ name, arguments: {} })) },
        },
        { when: { message: 'busy', call: 2 }, reply: { toolCalls: [{ name: 'pay', arguments: {} }] } },
      ],
      agents: [{ name: 'clerk', toolNames: ['pay', 'ship', 'book'] }],
    });
    const inFlight = refusal(start(app.client, 'clerk', { message: 'busy', stream: false }));
    await gate.reached;
    const { runs } = await stop(app, { scope: 'Agent', agentName: 'clerk' });
    assert.deepEqual(
      runs[0]?.effects.map(({ toolName, state }) => [toolName, state]),
      [
        ['book', 'Unknown'],
        ['pay', 'Unknown'],
      ],
    );
    await inFlight;
  },
);

forEachDurableService('a resume makes the runs of its agents due, and no other job', async (open) => {
  const app = await open({
    agents: [{ name: 'clerk' }, { name: 'other' }],
    service: { Scheduling: { RunWorker: false } },
  });
  const later = app.clock.now() + 3_600_000;
  const held = await enqueue(app.client, 'clerk', 'Hi');
  const other = await enqueue(app.client, 'other', 'Hi');
  const storage = app.store.open();
  const jobs = storage.stores(jobStore);
  const sweep = 'a-job-of-another-kind';
  const now = app.clock.now();
  await storage.write([
    jobs.queued({
      ...{ id: sweep, tenantId: 'default', handlerKey: 'acp.retention', lane: 'default', targetName: 'clerk' },
      ...{ payload: null, maxAttempts: 1, now },
    }),
  ]);
  for (const job of await jobs.claim('elsewhere', now, later, 9, { only: null, full: [], except: [], dueSince: null }))
    await jobs.release(job, later);
  await stop(app, { scope: 'Agent', agentName: 'clerk' });
  await resume(app, { scope: 'Agent', agentName: 'clerk' });
  const dueAt = async (id: string) => (await jobs.get(id))?.scheduled_for ?? assert.fail('the job is there');
  for (const id of [other, sweep]) assert.equal(await dueAt(id), later);
  assert.ok((await dueAt(held)) < later);
});

forEachDurableService('queued runs are held, over a restart too, and run once the stop is over', async (open) => {
  const setup = { agents: [{ name: 'clerk' }, { name: 'caller', callableAgentNames: ['clerk'] }] };
  const idle = { ...setup, service: { Scheduling: { RunWorker: false } } };
  const app = await open(idle);
  const queued = await enqueue(app.client, 'clerk', 'later');
  const result = await stop(app, { scope: 'All' });
  assert.deepEqual([result.heldCount, result.held.map(({ runId }) => runId)], [1, [queued]]);
  await app.close();

  const next = await open({ folder: app.folder });
  const [inForce] = (await next.client.emergency.status({})).body;
  assert.equal(inForce?.id, result.stop.id);
  assert.equal((await refusal(start(next.client, 'clerk', 'Hi'))).code, 'emergency-stopped');
  assert.equal((await getRun(next.client, queued)).status, 'Queued');
  await resume(next, { scope: 'All' });
  assert.equal((await followToEnd(next.client, queued)).at(-1)?.type, 'run.completed');
  assert.equal((await getRun(next.client, queued)).error, null);
});

forEachDurableService('a stopped agent is an error for the agent that calls it', async (open) => {
  const app = await open({
    agents: [{ name: 'clerk' }, { name: 'caller', callableAgentNames: ['clerk'] }],
    script: [
      {
        when: { message: 'ask', call: 1 },
        reply: { toolCalls: [{ name: 'call_clerk', arguments: { message: 'Hi' } }] },
      },
      { reply: { text: 'It said: {{last}}' } },
    ],
  });
  await stop(app, { scope: 'Agent', agentName: 'clerk' });
  const { output, runId } = await runJson(app.client, 'caller', 'ask');
  assert.equal(output, 'It said: Agent "clerk" failed.');
  const [child] = (await listRuns(app.client, { includeChildren: true })).filter((run) => run.parentRunId === runId);
  assert.deepEqual([child?.status, child?.error?.type], ['Failed', 'emergency_stop']);
});

forEachDurableService('a tenant stops its own agents, and cannot lift what the host has stopped', async (open) => {
  const app = await open({
    host: { AuthToken: tokenOf, Tenancy: { Enabled: true, AllowHeaderResolution: true } },
    token: tokenOf,
    agents: [{ name: 'clerk' }],
  });
  const host = app.inTenant('acme');
  const { plaintextKey } = (await host.keys.create({ body: { name: 'k', scopes: ['SecurityAdmin'] } })).body;
  const acme = { client: await app.clientFor(plaintextKey) };
  assert.equal((await refusal(stop(acme, { scope: 'All' }))).code, 'tenant-rejected');
  assert.equal((await refusal(stop(acme, { scope: 'Tenant', tenantId: 'default' }))).code, 'not-found');
  const own = await stop(acme, { scope: 'Tenant' });
  assert.equal(own.stop.tenantId, 'acme');
  assert.equal((await runJson(app.client, 'clerk', 'Hi')).output, 'Hello.', 'the host goes on');
  await stop(app, { scope: 'Tenant', tenantId: 'acme' });
  const { inForce } = await resume(acme, { scope: 'Tenant' });
  assert.equal(inForce.length, 1, 'the stop of the host stands');
  assert.equal((await refusal(resume(acme, { scope: 'Tenant' }))).code, 'not-found');
  assert.equal((await acme.client.emergency.status({})).body.length, 1);
  assert.deepEqual(
    (await trail({ client: host })).map(({ action }) => action),
    ['apikey.create', 'emergency.stop', 'emergency.stop', 'emergency.resume'],
  );
});

forEachDurableService('a stop that cannot be audited is refused and stops nothing', async (open) => {
  const app = await open({ agents: [{ name: 'clerk' }] });
  await app.store.refuse('audit entries');
  // Two at once: the second one must not be told that the first is in force.
  for (const refused of await Promise.all([1, 2].map(() => refusal(stop(app, { scope: 'All' })))))
    assert.deepEqual([refused.status, refused.code], [503, 'audit-unavailable']);
  assert.equal((await runJson(app.client, 'clerk', 'Hi')).output, 'Hello.');
  assert.deepEqual((await app.client.emergency.status({})).body, []);
});

forEachDurableService('what is stopped is named without doubt', async (open) => {
  const app = await open();
  const pathOf = async (body: Parameters<typeof stop>[1]) =>
    (await refusal(stop(app, body))).errors?.map(({ path }) => path);
  assert.deepEqual(await pathOf({ scope: 'Agent' }), ['agentName']);
  assert.deepEqual(await pathOf({ scope: 'Tenant', agentName: 'clerk' }), ['agentName']);
  assert.deepEqual(await pathOf({ scope: 'All', tenantId: 'default' }), ['tenantId']);
});
