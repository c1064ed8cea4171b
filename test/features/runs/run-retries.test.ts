import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { newId } from '../../../src/core/ids.ts';
import { openApp, type TestApp } from '../../support/app.ts';
import { callsTools, enqueue, followToEnd, Gate, getRun, tool } from './run-calls.ts';

interface Job {
  readonly status: string;
  readonly attempt: number;
  readonly scheduled_for: number;
}

const jobOf = (app: TestApp, id: string) =>
  app.rows<Job>('select status, attempt, scheduled_for from service_jobs where id = ?', id)[0];

const retries = { AsyncRun: { MaxAttempts: 3 }, Scheduling: { PollInterval: '1s' } };

test('RUN-17 RUN-77 JOB-33 JOB-34 JOB-35 a failed attempt goes back in line and the next goes on in the same log', async (t) => {
  let calls = 0;
  const app = await openApp(t, 'in process', {
    service: { ...retries, Tools: { MaxConsecutiveErrors: 0 } },
    tools: [
      tool('shaky', async () => {
        calls += 1;
        throw new Error('no');
      }),
    ],
    script: callsTools('shaky'),
    agents: [{ name: 'helper', toolNames: ['shaky'] }],
  });
  const before = Date.now();
  const runId = await enqueue(app.client, 'helper', 'Hi');
  while (jobOf(app, runId)?.status !== 'Pending' || jobOf(app, runId)?.attempt !== 1)
    await new Promise((resolve) => setImmediate(resolve));
  const waiting = jobOf(app, runId);
  assert.ok((waiting?.scheduled_for ?? 0) >= before + 8000 && (waiting?.scheduled_for ?? 0) <= Date.now() + 12_000);
  const row = await getRun(app.client, runId);
  assert.deepEqual([row.status, row.startedAt, row.error], ['Queued', null, null]);
  app.change('update service_jobs set scheduled_for = 0 where id = ?', runId);
  const events = await followToEnd(app.client, runId);
  assert.deepEqual(
    events.filter((event) => event.type === 'run.started').map((event) => event['attempt']),
    [1, 2],
  );
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal(calls, 1, 'the settled call is not made again');
  assert.deepEqual(app.rows('select * from service_run_steps'), []);
});

test('JOB-45 RUN-78 an orderly stop releases a run with attempts left, and its call is made again with its key', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  const gate = new Gate();
  const keys: string[] = [];
  const setup = {
    folder,
    service: retries,
    tools: [
      tool(
        'save',
        async (_args, { signal, idempotencyKey }) => {
          keys.push(idempotencyKey);
          if (keys.length === 1) await gate.pass(signal);
          return 'saved';
        },
        { effect: 'Write' },
      ),
    ],
    script: callsTools('save'),
  };
  const first = await openApp(t, 'in process', { ...setup, agents: [{ name: 'helper', toolNames: ['save'] }] });
  const runId = await enqueue(first.client, 'helper', 'Hi');
  await gate.reached;
  await first.close();
  assert.equal(
    first.rows<{ status: string }>('select status from service_runs where id = ?', runId)[0]?.status,
    'Queued',
  );
  assert.equal(jobOf(first, runId)?.status, 'Pending');
  const second = await openApp(t, 'in process', setup);
  const events = await followToEnd(second.client, runId);
  assert.equal(events.at(-1)?.['output'], 'Done: saved');
  assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
  assert.deepEqual(
    second
      .rows<{ state: string }>('select state from service_tool_invocations where run_id = ? order by id', runId)
      .map(({ state }) => state),
    ['Unknown', 'Settled'],
  );
});

test('RUN-74 a run without a sign of life is closed as orphaned', async (t) => {
  const app = await openApp(t, 'in process', {
    service: {
      RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '1m', ScanInterval: '1s' },
    },
    agents: [{ name: 'helper' }],
  });
  const id = newId();
  const started = Date.now() - 120_000;
  app.change(
    `insert into service_runs (id, tenant_id, agent_name, kind, status, created_at, started_at, is_streaming, depth)
     values (?, 'default', 'helper', 'Agent', 'Running', ?, ?, 1, 0)`,
    id,
    started,
    started,
  );
  const events = await followToEnd(app.client, id);
  assert.deepEqual([events.at(-1)?.type, events.at(-1)?.['error'].type], ['run.failed', 'orphaned']);
});
