import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { openCopy } from '../../../src/db/open-storage.ts';
import { ConditionFailedError, type Statement } from '../../../src/db/statement.ts';
import { encodePack } from '../../../src/engine/record/event-pack.ts';
import { createRunReconciliation } from '../../../src/features/runs/run-reconciliation.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { openApp } from '../../support/app.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';
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

test('JOB-30 RUN-78 a process whose job is another one’s writes nothing more of the run, and makes no further call', async (t) => {
  const gate = new Gate();
  const landed: string[] = [];
  const app = await openApp(t, 'in process', { ...twoSteps(gate, landed), service: { AsyncRun: { MaxAttempts: 2 } } });
  const runId = await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  await gate.reached;
  const before = {
    run: app.rows('select * from service_runs where id = ?', runId),
    events: app.rows('select * from service_run_events where run_id = ?', runId),
    calls: app.rows('select * from service_tool_invocations where run_id = ?', runId),
    sessions: app.rows('select version, active_run_id from service_sessions'),
  };
  // What the worker of another process does when this one was suspended for longer than a lease.
  app.change(`update service_jobs set lease_owner = 'other', attempt = 2 where id = ?`, runId);
  const job = app.rows('select * from service_jobs where id = ?', runId);
  gate.open();
  await app.close();
  assert.deepEqual(landed, []);
  assert.deepEqual(app.rows('select * from service_runs where id = ?', runId), before.run);
  assert.deepEqual(app.rows('select * from service_run_events where run_id = ?', runId), before.events);
  assert.deepEqual(app.rows('select * from service_tool_invocations where run_id = ?', runId), before.calls);
  assert.deepEqual(app.rows('select version, active_run_id from service_sessions'), before.sessions);
  assert.deepEqual(app.rows('select * from service_jobs where id = ?', runId), job);
});

test('RUN-74 a run that another process has closed as lost stays closed when its own one wakes up', async (t) => {
  const gate = new Gate();
  const landed: string[] = [];
  const app = await openApp(t, 'in process', twoSteps(gate, landed));
  const { runId, frames } = await stream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  await gate.reached;
  const [{ last } = { last: 0 }] = app.rows<{ last: number }>(
    'select max(last_sequence) as last from service_run_events where run_id = ?',
    runId,
  );
  const error = JSON.stringify({ error: { type: 'orphaned' } });
  const terminal = encodePack([
    { sequence: last + 1, type: 'run.failed', timestamp: 1, members: error, stored: error },
  ]);
  app.change(
    `update service_runs set status = 'Failed', error_type = 'orphaned', completed_at = 1 where id = ?`,
    runId,
  );
  app.change('insert into service_run_events values (?, ?, ?, ?)', runId, last + 1, last + 1, terminal);
  app.change('update service_sessions set active_run_id = null, lock_until = null');
  const log = app.rows('select * from service_run_events where run_id = ?', runId);
  gate.open();
  await collect(frames);
  await app.close();
  assert.deepEqual(landed, [], 'a call that cannot be recorded is not made');
  assert.deepEqual(app.rows('select status, error_type, completed_at from service_runs where id = ?', runId), [
    { status: 'Failed', error_type: 'orphaned', completed_at: 1 },
  ]);
  assert.deepEqual(app.rows('select * from service_run_events where run_id = ?', runId), log);
  assert.deepEqual(app.rows('select count(*) as n from service_session_messages'), [{ n: 0 }]);
});

test('RUN-74 a run that gives a sign of life while it is looked at is not closed, and old signs go', async (t) => {
  const location = join(temporaryFolder(t), 'acp.db');
  const { storage } = await openTestStore(t, location);
  const second = openCopy(storeOptions(location));
  t.after(() => second.close());
  const clock = { now: 1_000_000 };
  const alive = { id: 'alive', tenant_id: 't', job_id: null, status: 'Running' } as const;
  const members = {
    agent_name: 'a',
    kind: 'Agent',
    created_at: clock.now,
    started_at: clock.now,
    is_streaming: 0,
    depth: 0,
  };
  for (const run of [alive, { ...alive, id: 'dead' }, { ...alive, id: 'ended', status: 'Completed' }])
    await storage.write([
      storage.db
        .insertInto('runs')
        .values({ ...members, ...run } as never)
        .compile(),
    ]);
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
      runs: storage.stores(runStore),
      engine: nothingRuns,
      lost: {
        async lose(row, conditions: readonly Statement[] = []) {
          // The holder was suspended, and wakes up between the look and the write.
          if (row.id === 'alive') await holder.beat();
          try {
            await storage.write([
              ...conditions,
              storage.stores(runStore).closeFrom(row, 'Running', { status: 'Failed' }),
            ]);
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
  await storage.db
    .insertInto('run_heartbeats')
    .values([
      { run_id: 'dead', beat_at: clock.now },
      { run_id: 'ended', beat_at: clock.now },
    ])
    .execute();
  clock.now += settings.orphanThresholdMs;
  assert.equal(await other.scan(), 0, 'silent for the threshold is not yet silent for longer');
  clock.now += 1;
  assert.equal(await other.scan(), 1);
  assert.deepEqual(closed, ['dead']);
  const signs = await storage.db.selectFrom('run_heartbeats').selectAll().execute();
  assert.deepEqual(signs, [{ run_id: 'alive', beat_at: clock.now }]);
});

for (const [attempts, end] of [
  [2, 'Completed'],
  [1, 'Failed'],
] as const)
  test(`JOB-31 RUN-17 RUN-74 the run of a dead worker with ${attempts - 1} attempts left, and what it had begun`, async (t) => {
    const app = await openApp(t, 'in process', {
      service: {
        AsyncRun: { MaxAttempts: 2 },
        Scheduling: { PollInterval: '1s', Lanes: ['default'] },
      },
      agents: [{ name: 'helper' }],
    });
    // A lane that nobody serves here, so that nothing happens before the test has made it another one's.
    const runId = await enqueue(app.client, 'helper', { message: 'Hi', lane: 'elsewhere' });
    const childId = newId();
    app.change(`update service_runs set status = 'Running', started_at = 1 where id = ?`, runId);
    app.change(
      `insert into service_runs (id, tenant_id, agent_name, kind, status, created_at, started_at, is_streaming, depth,
         parent_run_id, root_run_id)
       values (?, 'default', 'helper', 'Agent', 'Running', 1, 1, 1, 1, ?, ?)`,
      childId,
      runId,
      runId,
    );
    app.change(
      `update service_jobs set lane = 'default', status = 'Running', attempt = 1, max_attempts = ?, started_at = 1,
         lease_owner = 'dead', lease_until = 1 where id = ?`,
      attempts,
      runId,
    );
    const events = await followToEnd(app.client, runId);
    assert.deepEqual(
      events.filter(({ type }) => type === 'run.started').map((event) => event['attempt']),
      attempts === 2 ? [2] : [],
    );
    const child = await getRun(app.client, childId);
    assert.deepEqual([child.status, child.error?.type], ['Failed', 'orphaned']);
    const run = await getRun(app.client, runId);
    assert.deepEqual([run.status, run.error?.type], [end, end === 'Failed' ? 'orphaned' : undefined]);
    await app.close();
    const [job] = app.rows<{ status: string; attempt: number; error_code: string | null }>(
      'select status, attempt, error_code from service_jobs where id = ?',
      runId,
    );
    const code = end === 'Failed' ? 'lease-expired' : null;
    assert.deepEqual(job, { status: end, attempt: attempts, error_code: code });
  });

test('JOB-31 a process that died between the end of a job and that of its run leaves no run in line', async (t) => {
  const folder = temporaryFolder(t);
  const setup = { folder, service: { Scheduling: { Lanes: ['default'] } } };
  const first = await openApp(t, 'in process', { ...setup, agents: [{ name: 'helper' }] });
  const runId = await enqueue(first.client, 'helper', { message: 'Hi', lane: 'elsewhere' });
  await first.close();
  first.change(`update service_jobs set status = 'Failed', error_code = 'lease-expired', completed_at = 1`);
  first.change('insert into service_run_heartbeats values (?, 1)', newId());
  const second = await openApp(t, 'in process', setup);
  const run = await getRun(second.client, runId);
  assert.deepEqual([run.status, run.error?.type], ['Failed', 'orphaned']);
  assert.deepEqual(second.rows('select * from service_run_heartbeats'), []);
});
