// A process of its own: it ends whole servers, and what shares the process with it would wait, too.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { everyJob, everyRun } from '../e2e/records.ts';
import { call, openStream, readLog } from '../e2e/wire.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { startFaultyPostgres } from '../support/postgres-outage.ts';
import { whyNoServer } from '../support/postgres-server.ts';
import { additionTo, jobBeginning, readFrom } from '../support/postgres-store.ts';
import { startEffectsServer } from './effects-server.ts';
import { outageSeconds } from './outage-length.ts';

// What a process waits with the start of a run.
const patienceSeconds = 30;
const awaySeconds = outageSeconds(8);

interface Moment {
  readonly what: string;
  /** What is on its way when the server goes. */
  readonly text: string;
  /** How long the server has to be away before the job waits for it. */
  readonly seconds: number;
}

const moments: readonly Moment[] = [
  { what: 'is taken', text: jobBeginning, seconds: 0 },
  { what: 'reads what is stored of its turn', text: readFrom('run_steps'), seconds: 5 },
  { what: 'begins its run', text: additionTo('runs'), seconds: patienceSeconds },
];

for (const { what, text, seconds } of moments)
  test(`RUN-78 JOB-31 a continuation that ${what} while the database goes away waits for it, and is made once`, {
    skip: whyNoServer() ?? (awaySeconds > seconds ? false : 'only a longer outage ends its patience'),
    timeout: 300_000,
  }, async (t) => {
    const postgres = await startFaultyPostgres();
    const proxy = await startCuttingProxy(postgres.url);
    const outside = await startEffectsServer();
    const folder = mkdtempSync(join(tmpdir(), 'acp-waits-'));
    outside.writeTools(folder);
    t.after(async () => {
      await proxy.close();
      await postgres.close();
      outside.close();
      rmSync(folder, { recursive: true, force: true });
    });
    const fleet = await openFleet({
      processes: 2,
      database: proxy.url,
      directDatabase: postgres.url,
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
            text: 'word '.repeat(100),
            chunkSize: 8,
            delay: '50ms',
            toolCalls: [{ name: 'destructive', arguments: { name: 'order' } }],
          },
        },
        { reply: { text: 'Done.' } },
      ],
    });
    t.after(() => fleet.close());
    const [first, other] = fleet.members;
    assert.ok(first !== undefined && other !== undefined);
    const agent = { name: 'shop', model: { provider: 'demo', model: 'm' }, toolNames: ['destructive'] };
    assert.equal((await call(`${other.url}/api/agents`, { body: agent })).status, 201);
    const stream = await openStream(`${first.url}/api/agents/shop/run`, { body: { message: 'Hi', sessionId: 's' } });
    await stream.first('message.delta');
    await fleet.end(first, 'kill');
    let hasBegun = false;
    proxy.holds = (piece) => {
      hasBegun ||= piece.includes(jobBeginning);
      return hasBegun && piece.includes(text);
    };
    await eventually('the continuation is on its way', () => proxy.isHolding, processMs);
    await postgres.crash();
    proxy.holds = () => false;
    proxy.letGo();
    await pause(awaySeconds * 1000);
    await postgres.start();

    const job = async () => (await everyJob(other, { handlerKey: 'acp.run-continuation' }).catch(() => []))[0] ?? null;
    const waiting = await eventually(
      'it waits, and says why',
      async () => {
        const row = await job();
        return row?.status === 'Pending' ? row : null;
      },
      processMs,
    );
    assert.equal(waiting.errorCode, 'store-unavailable');
    const done = await eventually(
      'the turn is gone on with',
      async () => {
        const row = await job();
        assert.notEqual(row?.status, 'Failed', JSON.stringify(row));
        return row?.status === 'Completed' ? row : null;
      },
      processMs,
    );
    assert.equal(done.errorCode, null);
    const continued = (await everyRun(other)).filter(({ continuedFromRunId }) => continuedFromRunId === stream.runId);
    assert.deepEqual(
      continued.map(({ id, status }) => [id, status]),
      [[done.id, 'Completed']],
    );
    const log = await readLog(other.url, done.id);
    assert.deepEqual(
      log.map(({ id }) => id),
      log.map((_, index) => index),
    );
    assert.deepEqual([...outside.hits], [['Destructive/order', 1]]);
  });
