import assert from 'node:assert/strict';
import { systemClock } from '../../../src/core/clock.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { ConditionFailedError } from '../../../src/db/statement.ts';
import { encodePack } from '../../../src/engine/record/event-pack.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { heartbeatStore } from '../../../src/features/runs/run-heartbeats.store.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { createRunReconciliation } from '../../../src/features/runs/run-reconciliation.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import { forEachDurableService, forEachOwnedService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachDurableStore, openForTwo, storedRows } from '../../support/store.ts';
import { anyJob, beginsJobs, beginsRun, opensRun } from './other-process.ts';
import { collect, enqueue, followToEnd, Gate, getRun, stream, tool } from './run-calls.ts';

/** A tool that waits at the gate, and one with an effect that counts its calls. */
const twoSteps = (gate: Gate, landed: string[]) => ({
  tools: [
    tool('wait', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    }),
    tool(
      'send',
      async () => {
        landed.push('sent');
        return 'sent';
      },
      { effect: 'External' },
    ),
  ],
  script: [
    { when: { call: 1 }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
    { when: { call: 2 }, reply: { toolCalls: [{ name: 'send', arguments: {} }] } },
    { reply: { text: 'Done.' } },
  ],
  agents: [{ name: 'helper', toolNames: ['wait', 'send'] }],
});

forEachDurableService(
  'JOB-30 RUN-78 a process whose job is another one’s writes nothing more of the run, and makes no further call',
  async (open) => {
    const gate = new Gate();
    const landed: string[] = [];
    const app = await open({ ...twoSteps(gate, landed), service: { AsyncRun: { MaxAttempts: 2 } } });
    const runId = await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    await gate.reached;
    const stored = async () => ({
      runs: await app.store.stored('runs'),
      events: await app.store.stored('run events'),
      calls: await app.store.stored('tool calls'),
      sessions: await app.store.stored('sessions'),
    });
    const before = await stored();
    // What the worker of another process does when this one was suspended for longer than a lease.
    const jobs = app.store.open().stores(jobStore);
    const later = app.clock.now() + 3_600_000;
    const [taken = assert.fail('it has lapsed')] = await jobs.claim('other', later, later + 60_000, 1, anyJob);
    assert.deepEqual([taken.id, taken.attempt], [runId, 2]);
    await jobs.begin(taken);
    const job = await app.store.stored('jobs');
    gate.open();
    await app.close();
    assert.deepEqual(landed, []);
    assert.deepEqual(await stored(), before);
    assert.deepEqual(await app.store.stored('jobs'), job);
  },
);

forEachDurableService(
  'RUN-74 a run that another process has closed as lost stays closed when its own one wakes up',
  async (open) => {
    const gate = new Gate();
    const landed: string[] = [];
    const app = await open(twoSteps(gate, landed));
    const { runId, frames } = await stream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    await gate.reached;
    const storage = app.store.open();
    const runs = storage.stores(runStore);
    const last = await runs.lastSequence(runId);
    const error = JSON.stringify({ error: { type: 'orphaned' } });
    const terminal = encodePack([
      { sequence: last + 1, type: 'run.failed', timestamp: 1, members: error, stored: error },
    ]);
    const closed = { status: 'Failed', error_type: 'orphaned', completed_at: 1 };
    const rest = [
      storage.stores(createRunJournal(null, null)).packed('default', runId, last + 1, last + 1, terminal),
      ...storage.stores(sessionStore).release('default', 's', runId),
    ];
    await storage.transaction(async (stores) => {
      await stores(runStore).closeFrom({ tenant_id: 'default', id: runId }, 'Running', closed);
      await stores.write(rest);
    });
    const stored = async () => ({ runs: await app.store.stored('runs'), events: await app.store.stored('run events') });
    const before = await stored();
    gate.open();
    await collect(frames);
    await app.close();
    assert.deepEqual(landed, [], 'a call that cannot be recorded is not made');
    assert.deepEqual(await stored(), before);
    assert.equal(await app.store.count('session messages'), 0);
  },
);

forEachOwnedService('RUN-17 the end of a lost run stands whole, or the run is still open', async (open) => {
  const first = await open({ agents: [{ name: 'helper' }] });
  const runId = newId();
  await opensRun(first.store.open(), runId);
  await first.close();
  const before = await first.store.stored('runs');
  const accept = await first.store.refuse('run events');
  await assert.rejects(open({ folder: first.folder }));
  assert.deepEqual(await first.store.stored('runs'), before);
  await accept();
  const second = await open({ folder: first.folder });
  assert.equal((await getRun(second.client, runId)).error?.type, 'orphaned');
  assert.deepEqual(
    (await followToEnd(second.client, runId)).map(({ type }) => type),
    ['run.failed'],
  );
});

forEachDurableStore(
  'RUN-74 a run that gives a sign of life while it is looked at is not closed, and old signs go',
  async (t, kind) => {
    const [storage, second] = await openForTwo(t, kind);
    const clock = { now: 1_000_000 };
    const runs = storage.stores(runStore);
    for (const id of ['alive', 'dead', 'ended', 'mute'])
      await opensRun(storage, id, { tenantId: 't', createdAt: 60_000, startedAt: 60_000 });
    await runs.closeFrom({ tenant_id: 't', id: 'ended' }, 'Running', { status: 'Completed' });
    const settings = {
      heartbeatIntervalMs: 30_000,
      orphanThresholdMs: 300_000,
      scanIntervalMs: 60_000,
      maxRunsPerScan: 100,
    };
    const nothingRuns = { list: () => [], active: () => undefined };
    const base = {
      log: silentLogger,
      clock: { ...systemClock, now: () => clock.now },
      jobs: { get: async () => undefined },
      unwritten: () => [],
    };
    const closed: string[] = [];
    const holder = createRunReconciliation(
      {
        ...base,
        storage: second,
        runs: second.stores(runStore),
        engine: { list: () => [{ id: 'alive' }] as never, active: () => undefined },
        lost: { lose: () => assert.fail(), loseDescendants: async () => 0 },
      },
      settings,
    );
    const other = createRunReconciliation(
      {
        ...base,
        storage,
        runs,
        engine: nothingRuns,
        lost: {
          async lose(row, condition) {
            // The holder was suspended, and wakes up between the look and the write.
            if (row.id === 'alive') await holder.beat();
            try {
              await storage.transaction(async (stores) => {
                await condition?.(stores);
                await stores(runStore).closeFrom(row, 'Running', { status: 'Failed' });
              });
              closed.push(row.id);
              return 'closed';
            } catch (error) {
              assert.ok(error instanceof ConditionFailedError);
              return 'gone';
            }
          },
          loseDescendants: async () => 0,
        },
      },
      settings,
    );
    await holder.beat();
    await storage.stores(heartbeatStore).beat(['dead', 'ended'], clock.now);
    // Its own times are a minute after the epoch: how long it is silent counts from the first look on.
    assert.equal(await other.scan(), 0);
    clock.now += settings.orphanThresholdMs;
    assert.equal(await other.scan(), 0, 'silent for the threshold is not yet silent for longer');
    clock.now += 1;
    assert.equal(await other.scan(), 2);
    assert.deepEqual(closed, ['dead', 'mute']);
    assert.deepEqual(await storedRows(storage, 'signs of life'), [{ run_id: 'alive', beat_at: clock.now }]);
  },
);

for (const [attempts, end] of [
  [2, 'Completed'],
  [1, 'Failed'],
] as const)
  forEachDurableService(
    `JOB-31 RUN-17 RUN-74 the run of a dead worker with ${attempts - 1} attempts left, and what it had begun`,
    async (open) => {
      const gate = new Gate();
      const app = await open({
        service: {
          AsyncRun: { MaxAttempts: attempts },
          Scheduling: { PollInterval: '1s', MaxConcurrentJobs: 1 },
        },
        tools: twoSteps(gate, []).tools,
        script: [
          { when: { message: 'wait', call: 1 }, reply: { toolCalls: [{ name: 'wait', arguments: {} }] } },
          { reply: { text: 'Done.' } },
        ],
        agents: [{ name: 'helper', toolNames: ['wait'] }],
      });
      // The worker of this process is busy when the next job comes, which another one takes.
      const busy = await enqueue(app.client, 'helper', 'wait');
      await gate.reached;
      const runId = await enqueue(app.client, 'helper', 'Hi');
      const storage = app.store.open();
      const now = app.clock.now();
      const leases = await beginsJobs(storage, 'dead', now, now + 3_600_000);
      await beginsRun(storage, runId);
      const childId = newId();
      await opensRun(storage, childId, { parentRunId: runId, rootRunId: runId, depth: 1 });
      // It dies here, and not at a poll of the other one before all of this was written.
      await storage.stores(jobStore).renew(leases, now);
      gate.open();
      await followToEnd(app.client, busy);
      const events = await followToEnd(app.client, runId);
      assert.deepEqual(
        events.filter(({ type }) => type === 'run.started').map((event) => event['attempt']),
        attempts === 2 ? [2] : [],
      );
      const child = await getRun(app.client, childId);
      assert.deepEqual([child.status, child.error?.type], ['Failed', 'orphaned']);
      const run = await getRun(app.client, runId);
      assert.deepEqual([run.status, run.error?.type], [end, end === 'Failed' ? 'orphaned' : undefined]);
      const job = await eventually('the job is over', async () => {
        const { job: row } = (await app.client.jobs.get({ params: { id: runId } })).body;
        return row.status === end ? row : null;
      });
      assert.deepEqual([job.attempt, job.errorCode], [attempts, end === 'Failed' ? 'lease-expired' : null]);
    },
  );

forEachOwnedService(
  'JOB-31 a process that died between the end of a job and that of its run leaves no run in line',
  async (open) => {
    const service = { Scheduling: { Lanes: ['default'] } };
    const first = await open({ service, agents: [{ name: 'helper' }] });
    const runId = await enqueue(first.client, 'helper', { message: 'Hi', lane: 'elsewhere' });
    const storage = first.store.open();
    await storage.stores(jobStore).lose(runId, 0, 1);
    await storage.stores(heartbeatStore).beat([newId()], 1);
    await first.close();
    const second = await open({ service, folder: first.folder });
    const run = await getRun(second.client, runId);
    assert.deepEqual([run.status, run.error?.type], ['Failed', 'orphaned']);
    assert.equal(await second.store.count('signs of life'), 0);
  },
);
