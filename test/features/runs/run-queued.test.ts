import assert from 'node:assert/strict';
import type { SessionRow } from '../../../src/db/tables/sessions.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import {
  type AppSetup,
  forEachDurableService,
  forEachOwnedService,
  forEachService,
  overHttp,
  type TestApp,
} from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { anyJob, beginsJobs, beginsRun, idleKeys } from './other-process.ts';
import {
  collect,
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  post,
  readUntil,
  refusal,
  runJson,
  start,
  stream,
  tool,
  typesOf,
  waitingSetup,
} from './run-calls.ts';

const noWorker = { Scheduling: { RunWorker: false } };

/** The job as it is stored: no caller sees the payload of a queued run. */
const jobOf = (app: TestApp, id: string) => app.store.open().stores(jobStore).get(id);

overHttp('RUN-15 the answer says where the queued run is', async (open) => {
  const app = await open({ host: { Prefix: '/acp' }, service: noWorker, agents: [{ name: 'helper' }] });
  const answer = await post(app, '/api/agents/helper/run', { message: 'Hi' }, { prefer: 'respond-async' });
  assert.equal(answer.status, 202);
  const body = (await answer.json()) as Record<string, string>;
  const location = `/acp/api/runs/${body['runId']}`;
  assert.deepEqual(body, {
    runId: body['runId'],
    jobId: body['runId'],
    location,
    eventsLocation: `${location}/events`,
  });
  assert.equal(answer.headers.get('location'), location);
  assert.equal(answer.headers.get('preference-applied'), 'respond-async');
  assert.equal(answer.headers.get('x-run-id'), body['runId']);
});

forEachDurableService(
  'RUN-14 RUN-15 a queued run waits with its job, then a worker runs it in the same log',
  async (open) => {
    const gate = new Gate();
    const app = await open({ ...waitingSetup(gate), service: { Scheduling: { LaneByHandlerKey: {} } } });
    const runId = await enqueue(app.client, 'helper', { message: 'wait', lane: 'slow' });
    const { frames } = await app.client.runs.events({ params: { runId } });
    const iterator = frames[Symbol.asyncIterator]();
    const [queued] = await readUntil(iterator, 'run.queued');
    const { jobId, lane, sessionId } = JSON.parse(queued?.data ?? '') as Record<string, unknown>;
    assert.deepEqual([jobId, lane, sessionId], [runId, 'slow', null]);
    await gate.reached;
    const running = await getRun(app.client, runId);
    assert.deepEqual([running.status, running.jobId, running.modelId], ['Running', runId, 'demo-1']);
    assert.equal((await jobOf(app, runId))?.handler_key, 'acp.agent-run');
    gate.open();
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next());
    const events = await followToEnd(app.client, runId);
    assert.deepEqual(typesOf(events).slice(0, 2), ['run.queued', 'run.started']);
    assert.equal(events[1]?.['attempt'], 1);
    assert.equal(events.at(-1)?.['output'], 'It is over.');
    const run = await getRun(app.client, runId);
    assert.equal(run.status, 'Completed');
    assert.equal(run.eventCount, events.length);
  },
);

forEachDurableService('JOB-20 a queued run and its job are canceled together or not at all', async (open) => {
  const app = await open({ service: noWorker, agents: [{ name: 'helper' }] });
  const runId = await enqueue(app.client, 'helper', 'Hi');
  const accept = await app.store.refuse('jobs');
  await assert.rejects(app.client.runs.cancel({ params: { runId } }));
  await accept();
  assert.equal((await getRun(app.client, runId)).status, 'Queued');
  assert.equal(await app.store.count('run events'), 1, 'its log says nothing of an end');
  await app.client.runs.cancel({ params: { runId } });
  assert.deepEqual(typesOf(await followToEnd(app.client, runId)), ['run.queued', 'run.canceled']);
  assert.equal((await jobOf(app, runId))?.status, 'Canceled');
});

forEachOwnedService('a start says how many queued runs a dead worker had, not how many wait', async (open) => {
  const first = await open({ service: noWorker, agents: [{ name: 'helper' }] });
  const runIds = [await enqueue(first.client, 'helper', 'Hi'), await enqueue(first.client, 'helper', 'Ho')];
  const recovered = ({ log }: TestApp) =>
    log.filter(({ message }) => message.includes('last owner')).map(({ fields }) => fields);
  await first.close();
  const second = await open({ service: noWorker, folder: first.folder });
  assert.deepEqual(recovered(second), []);
  const storage = second.store.open();
  const now = second.clock.now();
  await storage.stores(jobStore).claim('dead', now, now + 60_000, 1, anyJob);
  await storage.close();
  await second.close();
  const third = await open({ service: noWorker, folder: first.folder });
  assert.deepEqual(recovered(third), [{ orphanedRuns: 0, requeuedRuns: 1 }]);
  assert.deepEqual((await listRuns(third.client, { status: 'Queued' })).map(({ id }) => id).sort(), runIds.sort());
});

forEachDurableService('RUN-14 a run that no worker has taken is Queued and has not started', async (open) => {
  const app = await open({
    service: { ...noWorker, Scheduling: { RunWorker: false, LaneByHandlerKey: { 'acp.agent-run': 'agents' } } },
    agents: [{ name: 'helper' }],
  });
  const runId = await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  const run = await getRun(app.client, runId);
  assert.deepEqual(
    [run.status, run.startedAt, run.completedAt, run.durationMs, run.agentVersion, run.sessionId, run.jobId],
    ['Queued', null, null, null, null, 's', runId],
  );
  const job = await jobOf(app, runId);
  assert.deepEqual([job?.status, job?.lane], ['Pending', 'agents']);
  assert.deepEqual(await listRuns(app.client, { status: 'Queued' }), [run]);
});

forEachDurableService('RUN-41 JOB-26 a queued run is cancelled at once, and no worker runs it', async (open) => {
  const app = await open({ service: noWorker, agents: [{ name: 'helper' }] });
  const runId = await enqueue(app.client, 'helper', 'Hi');
  const canceled = await app.client.runs.cancel({ params: { runId } });
  assert.equal(canceled.status, 202);
  assert.equal(canceled.body.status, 'Canceled');
  assert.equal(canceled.body.error?.class, 'Canceled');
  const events = await followToEnd(app.client, runId);
  assert.deepEqual(typesOf(events), ['run.queued', 'run.canceled']);
  assert.deepEqual([events[1]?.['cause'], events[1]?.['usage']], ['Requested', null]);
  const job = await jobOf(app, runId);
  assert.deepEqual([job?.status, job?.payload], ['Canceled', null]);
  const again = await refusal(app.client.runs.cancel({ params: { runId } }));
  assert.deepEqual([again.status, again.code], [409, 'run-finished']);
});

forEachService('RUN-17 a queued run on a busy session waits its turn', async (open) => {
  const gate = new Gate();
  const app = await open(waitingSetup(gate));
  const first = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  await gate.reached;
  const busy = await refusal(
    start(app.client, 'helper', { message: 'two', sessionId: 's' }, { headers: { prefer: 'respond-async' } }),
  );
  assert.equal(busy.code, 'session-busy', 'Reject is decided at acceptance');
  const runId = await enqueue(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
  assert.equal((await getRun(app.client, runId)).status, 'Queued');
  gate.open();
  await collect(first.frames);
  await followToEnd(app.client, runId);
  const { completedAt } = await getRun(app.client, first.runId);
  const { startedAt } = await getRun(app.client, runId);
  assert.ok((startedAt ?? '') >= (completedAt ?? '~'));
});

/** Resolves once a worker has the job. */
const taken = (app: TestApp, id: string) =>
  eventually(
    'a worker has the job',
    async () => (await app.client.jobs.get({ params: { id } })).body.job.status === 'Running',
  );

forEachDurableService(
  'RUN-41 a queued run that waits for its session can be cancelled, and its worker goes on',
  async (open) => {
    const gate = new Gate();
    const app = await open({ ...waitingSetup(gate), service: { Scheduling: { MaxConcurrentJobs: 1 } } });
    const first = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
    await gate.reached;
    const runId = await enqueue(app.client, 'helper', { message: 'two', sessionId: 's', concurrency: 'Enqueue' });
    await taken(app, runId);
    const canceled = await app.client.runs.cancel({ params: { runId } });
    assert.equal(canceled.body.status, 'Canceled');
    assert.deepEqual(typesOf(await followToEnd(app.client, runId)), ['run.queued', 'run.canceled']);
    const other = await enqueue(app.client, 'helper', 'Hi');
    assert.equal((await followToEnd(app.client, other)).at(-1)?.type, 'run.completed', 'the only worker is free again');
    assert.equal((await jobOf(app, runId))?.status, 'Canceled');
    gate.open();
    await collect(first.frames);
    await runJson(app.client, 'helper', { message: 'three', sessionId: 's' });
  },
);

forEachService('RUN-17 more than 16 queued runs may wait for one session', async (open) => {
  const gate = new Gate();
  const app = await open({ ...waitingSetup(gate), service: { Scheduling: { MaxConcurrentJobs: 20 } } });
  const first = await stream(app.client, 'helper', { message: 'wait', sessionId: 's' });
  await gate.reached;
  const ids: string[] = [];
  for (let index = 0; index < 18; index += 1)
    ids.push(await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's', concurrency: 'Enqueue' }));
  for (const id of ids) await taken(app, id);
  gate.open();
  await collect(first.frames);
  for (const id of ids) assert.equal((await followToEnd(app.client, id)).at(-1)?.type, 'run.completed');
});

forEachService('JOB-27 a lane takes no more jobs than its limit, and other lanes go on', async (open) => {
  const gates = [new Gate(), new Gate()] as const;
  const order: string[] = [];
  let waits = 0;
  const app = await open({
    tools: [
      tool('wait', async (_args, { runId, signal }) => {
        order.push(runId);
        const gate = gates[waits];
        waits += 1;
        await gate?.pass(signal);
        return 'waited';
      }),
    ],
    script: [
      { when: { tool: 'wait' }, reply: { text: 'Over.' } },
      { when: { message: 'wait' }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
      { reply: { text: 'Hello.' } },
    ],
    service: { Scheduling: { MaxConcurrentJobs: 4, MaxConcurrentJobsPerLane: { slow: 1 } } },
    agents: [{ name: 'helper', toolNames: ['wait'] }],
  });
  const first = await enqueue(app.client, 'helper', { message: 'wait', lane: 'slow' });
  const second = await enqueue(app.client, 'helper', { message: 'wait', lane: 'slow' });
  const third = await enqueue(app.client, 'helper', { message: 'quick', lane: 'fast' });
  await gates[0].reached;
  assert.equal((await followToEnd(app.client, third)).at(-1)?.type, 'run.completed');
  assert.equal((await getRun(app.client, second)).status, 'Queued');
  assert.deepEqual(order, [first]);
  gates[0].open();
  await gates[1].reached;
  gates[1].open();
  await followToEnd(app.client, second);
  assert.deepEqual(order, [first, second]);
});

forEachService('JOB-28 a worker serves its own lanes only', async (open) => {
  const app = await open({ service: { Scheduling: { Lanes: ['mine'] } }, agents: [{ name: 'helper' }] });
  const other = await enqueue(app.client, 'helper', { message: 'Hi', lane: 'theirs' });
  const own = await enqueue(app.client, 'helper', { message: 'Hi', lane: 'mine' });
  await followToEnd(app.client, own);
  assert.equal((await getRun(app.client, other)).status, 'Queued');
});

forEachDurableService(
  'RUN-16 the version current at the start counts; an agent that is gone by then fails the run',
  async (open, t) => {
    const setup: AppSetup = { service: noWorker, agents: [{ name: 'helper' }, { name: 'gone' }] };
    const app = await open(setup);
    const saved = await enqueue(app.client, 'helper', 'Hi');
    const gone = await enqueue(app.client, 'gone', 'Hi');
    await app.client.agents.save({
      params: { name: 'helper' },
      body: { name: 'helper', model: { provider: 'demo', model: 'demo-2' } },
    });
    await app.client.agents.remove({ params: { name: 'gone' } });
    assert.notEqual((await jobOf(app, saved))?.payload, null, 'OBS-6 the input is kept until the run starts');
    await app.close();
    t.diagnostic('opened again with a worker');
    const next = await open({ folder: app.folder });
    await followToEnd(next.client, saved);
    const run = await getRun(next.client, saved);
    assert.deepEqual([run.status, run.agentVersion, run.modelId], ['Completed', 2, 'demo-2']);
    assert.equal((await jobOf(next, saved))?.payload, null);
    assert.equal((await next.client.runs.input({ params: { runId: saved } })).body.messages.length, 1);
    assert.deepEqual(typesOf(await followToEnd(next.client, gone)), ['run.queued', 'run.failed']);
    const failed = await getRun(next.client, gone);
    assert.deepEqual([failed.error?.class, failed.error?.type], ['CompilationFailed', 'agent_not_found']);
  },
);

forEachDurableService('RUN-16 RUN-67 whether the prompt fits is asked again at the start', async (open) => {
  const service = {
    Preflight: { Enabled: true },
    Providers: { Compatible: { local: { Models: [{ Name: 'small', ContextWindowTokens: 100 }] } } },
  };
  const model = { provider: 'local', model: 'small' };
  const app = await open({
    simulator: {},
    service: { ...service, ...noWorker },
    agents: [{ name: 'helper', model }],
  });
  const runId = await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  await app.client.agents.save({
    params: { name: 'helper' },
    body: {
      name: 'helper',
      model,
      instructions: 'Many words. '.repeat(100),
    },
  });
  await app.close();
  const next = await open({ simulator: {}, service, folder: app.folder });
  assert.deepEqual(typesOf(await followToEnd(next.client, runId)), ['run.queued', 'run.failed']);
  const { error } = await getRun(next.client, runId);
  assert.deepEqual([error?.class, error?.type], ['ProviderError', 'context_overflow']);
  assert.equal(next.simulator.requests.length, 0);
  await refusal(start(next.client, 'helper', { message: 'Hi', sessionId: 's' }));
  await next.client.agents.save({
    params: { name: 'helper' },
    body: { name: 'helper', model },
  });
  await runJson(next.client, 'helper', { message: 'Hi', sessionId: 's' });
});

forEachDurableService('RUN-36 TOOL-12 a queued run keeps the authority of its acceptance', async (open) => {
  const seen: unknown[] = [];
  const setup: AppSetup = {
    tools: [tool('look', async () => 'seen')],
    authorizer: {
      async authorize({ principal }) {
        seen.push(principal);
        return { allowed: true };
      },
    },
    script: [
      { when: { tool: 'look' }, reply: { text: 'Done.' } },
      { reply: { toolCalls: [{ name: 'look', arguments: {} }] } },
    ],
  };
  const app = await open({ ...setup, service: noWorker, agents: [{ name: 'helper', toolNames: ['look'] }] });
  const { body } = await app.client.keys.create({
    body: { name: 'batch', role: 'Operator', scopes: ['RunsRead', 'RunsWrite'] },
  });
  const runId = await enqueue(await app.clientFor(body.plaintextKey), 'helper', 'Hi');
  await app.client.keys.remove({ params: { id: body.record.id } });
  await app.close();
  const next = await open({ ...setup, folder: app.folder });
  await followToEnd(next.client, runId);
  assert.deepEqual(seen, [
    {
      kind: 'ApiKey',
      role: 'Operator',
      scopes: ['RunsRead', 'RunsWrite'],
      actor: `apikey:${body.record.id}`,
      userId: null,
      apiKey: { id: body.record.id, name: 'batch' },
      permissions: [],
    },
  ]);
  assert.deepEqual((await getRun(next.client, runId)).labels, { apiKey: 'batch' });
});

forEachService('RUN-15 queued runs can be switched off', async (open) => {
  for (const service of [{ AsyncRun: { Enabled: false } }, { Scheduling: { Enabled: false } }]) {
    const app = await open({ service, agents: [{ name: 'helper' }] });
    const problem = await refusal(start(app.client, 'helper', 'Hi', { headers: { prefer: 'respond-async' } }));
    assert.deepEqual([problem.status, problem.code], [501, 'async-runs-disabled']);
    assert.deepEqual(await listRuns(app.client), []);
    await runJson(app.client, 'helper', 'Hi');
  }
});

forEachOwnedService(
  'RUN-75 RUN-74 what a dead owner left running is closed, what it left queued goes on',
  async (open) => {
    const setup: AppSetup = { service: noWorker };
    const app = await open({ ...setup, agents: [{ name: 'helper' }] });
    const lost = await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    const kept = await enqueue(app.client, 'helper', 'Hi');
    // What a process leaves when it dies while it executes the one run and has just taken the other.
    const dead = app.store.open();
    const now = Date.now();
    await beginsRun(dead, lost);
    await beginsJobs(dead, 'dead', now, 1);
    const sessions = dead.stores(sessionStore);
    await dead.write([
      sessions.open({
        tenant_id: 'default',
        id: 's',
        agent_name: 'helper',
        owner_id: null,
        conversation_id: 'c',
        version: 0,
        message_count: 0,
        active_run_id: lost,
        lock_until: 9e15,
        created_at: 1,
        updated_at: 1,
      } as SessionRow),
    ]);
    await idleKeys(dead, { now: () => 8e15 }).claim('default', null, 'k', 'f');
    await app.close();
    const next = await open({ folder: app.folder });
    const orphan = await getRun(next.client, lost);
    assert.deepEqual(
      [orphan.status, orphan.error?.class, orphan.error?.type],
      ['Failed', 'Infrastructure', 'orphaned'],
    );
    assert.deepEqual(typesOf(await followToEnd(next.client, lost)), ['run.queued', 'run.failed']);
    assert.equal((await jobOf(next, lost))?.status, 'Failed');
    assert.equal((await followToEnd(next.client, kept)).at(-1)?.type, 'run.completed');
    await runJson(next.client, 'helper', { message: 'Hi', sessionId: 's' });
    await runJson(next.client, 'helper', 'Hi', { headers: { 'idempotency-key': 'k' } });
  },
);
