import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../e2e/support.ts';
import { call, openStream } from '../e2e/wire.ts';
import { openFleet } from '../support/fleet.ts';
import { findPostgres } from '../support/postgres-server.ts';
import { startEffectsServer } from './effects-server.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

interface Run {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly type: string } | null;
  readonly eventCount: number;
  readonly continuedFromRunId: string | null;
}

test('RUN-74 RUN-78 a process that is stopped in its run finds it closed and gone on with, and makes no call of it', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-fleet-'));
  const outside = await startEffectsServer();
  outside.writeTools(folder);
  const fleet = await openFleet({
    processes: 2,
    host: { Tools: [folder] },
    service: {
      Scheduling: { PollInterval: '1s' },
      RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '3s', ScanInterval: '1s' },
      RunContinuation: { Enabled: true },
      Egress: { AllowPrivateNetworkTargets: true },
    },
    script: [
      {
        when: { call: 1 },
        reply: {
          text: Array.from({ length: 40 }, (_, index) => `word${index} `).join(''),
          chunkSize: 8,
          delay: '50ms',
          toolCalls: [{ name: 'destructive', arguments: { name: 'order' } }],
        },
      },
      { reply: { text: 'Done.' } },
    ],
  });
  t.after(async () => {
    await fleet.close();
    outside.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const [still, other] = fleet.members;
  assert.ok(still !== undefined && other !== undefined);
  const agent = { name: 'shop', model: { provider: 'demo', model: 'm' }, toolNames: ['destructive'] };
  assert.equal((await call(`${other.url}/api/agents`, { method: 'POST', body: agent })).status, 201);

  const here = await openStream(`${still.url}/api/agents/shop/run`, {
    method: 'POST',
    body: { message: 'Hi', sessionId: 's' },
  });
  const { runId } = here;
  const there = await openStream(`${other.url}/api/runs/${runId}/events`);
  await there.first('message.delta');
  fleet.pause(still);
  const runOf = async (id: string): Promise<Run> => (await call(`${other.url}/api/runs/${id}`)).json<Run>();
  const lost = await until('the run is closed', async () => {
    const run = await runOf(runId);
    return run.status === 'Failed' ? run : null;
  });
  assert.equal(lost.error?.type, 'orphaned');
  assert.equal(await there.ended, 'end');
  const next = await until('another process goes on with the turn', async () => {
    const runs = (await call(`${other.url}/api/runs?sessionId=s`)).json<Run[]>();
    return runs.find((run) => run.continuedFromRunId === runId && run.status === 'Completed');
  });
  assert.notEqual(next.id, runId);
  assert.deepEqual([...outside.hits], [['Destructive/order', 1]]);

  fleet.resume(still);
  assert.equal(await here.ended, 'end');
  const log = there.frames.map(({ id }) => id);
  assert.deepEqual(
    log,
    log.map((_, index) => index),
  );
  assert.deepEqual(
    here.frames.flatMap(({ id }) => (id === null ? [] : [id])),
    log,
  );
  assert.deepEqual(
    here.frames.slice(-2).map(({ event }) => event),
    ['error', 'run.failed'],
  );
  assert.deepEqual(await runOf(runId), { ...lost, continuedBy: next.id });
  assert.deepEqual([...outside.hits], [['Destructive/order', 1]], 'the call is not made twice');
  const told = still.log().filter(({ message }) => message.startsWith('A run was closed or taken over'));
  assert.deepEqual(
    told.map((line) => line['runId']),
    [runId],
  );
});
