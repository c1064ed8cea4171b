import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { call, openStream } from '../e2e/wire.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { openTransactions, rowsIn, takeServiceLease } from '../support/postgres-store.ts';
import { startEffectsServer } from './effects-server.ts';
import { leaves, takes } from './lease-history.ts';
import { skip } from './members.ts';

interface LateWrite {
  readonly service: string;
  /** In what the service writes, and in nothing else. */
  readonly text: string;
  readonly processes: number;
  /** Gives the service something to do. */
  readonly cause: (fleet: Fleet) => Promise<void>;
  /** How much of it there is. */
  readonly written: (url: string, database: string) => Promise<number>;
}

const kinds: readonly LateWrite[] = [
  {
    service: 'retention',
    text: '"everyTenant":true',
    processes: 1,
    cause: async () => undefined,
    written: (_, database) => rowsIn(database, 'jobs'),
  },
  {
    service: 'run-reconciliation',
    text: 'orphaned',
    processes: 2,
    async cause(fleet) {
      const [, other] = fleet.members;
      assert.ok(other !== undefined);
      const agent = { name: 'helper', model: { provider: 'demo', model: 'm' } };
      await call(`${other.url}/api/agents`, { method: 'POST', body: agent });
      const stream = await openStream(`${other.url}/api/agents/helper/run`, {
        method: 'POST',
        body: { message: 'Hi' },
      });
      await stream.first('message.delta');
      await fleet.end(other, 'kill');
    },
    written: async (url) => (await call(`${url}/api/runs?status=Failed`)).json<unknown[]>().length,
  },
  {
    service: 'approval-expiration',
    text: 'Expired',
    processes: 1,
    async cause(fleet) {
      const agent = { name: 'cashier', model: { provider: 'demo', model: 'm' }, toolNames: ['guarded'] };
      assert.equal((await call(`${fleet.url}/api/agents`, { method: 'POST', body: agent })).status, 201);
      const body = { message: 'pay', sessionId: 's' };
      const queued = await call(`${fleet.url}/api/agents/cashier/run`, { body, headers: { prefer: 'respond-async' } });
      const { runId } = queued.json<{ runId: string }>();
      await eventually(
        'it asks',
        async () =>
          (await call(`${fleet.url}/api/runs/${runId}`)).json<{ status: string }>().status === 'AwaitingApproval',
        processMs,
      );
    },
    written: async (url) => (await call(`${url}/api/audit?action=approval.expire`)).json<unknown[]>().length,
  },
];

for (const { service, text, processes, cause, written } of kinds)
  test(`JOB-41 what a process was about to write for ${service} is not written once another one has the lease`, {
    skip,
    timeout: 120_000,
  }, async (t) => {
    const { url, drop } = await createDatabase();
    const proxy = await startCuttingProxy(url);
    t.after(async () => {
      proxy.holds = () => false;
      proxy.letGo();
      await proxy.close();
      await drop();
    });
    proxy.holds = (piece) => piece.includes(text);
    const outside = await startEffectsServer();
    const folder = mkdtempSync(join(tmpdir(), 'acp-late-'));
    outside.writeTools(folder);
    t.after(() => {
      outside.close();
      rmSync(folder, { recursive: true, force: true });
    });
    const fleet = await openFleet({
      processes,
      database: proxy.url,
      host: { Tools: [folder] },
      service: {
        SingletonExecution: { Enabled: true, LeaseDuration: '3s' },
        Retention: { Enabled: true },
        Egress: { AllowPrivateNetworkTargets: true },
        Approvals: { DefaultExpiration: '1s', ScanInterval: '1s' },
        RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '3s', ScanInterval: '1s' },
      },
      script: [
        { when: { message: 'pay' }, reply: { toolCalls: [{ name: 'guarded', arguments: { name: 'order' } }] } },
        { reply: { text: 'word '.repeat(400), chunkSize: 5, delay: '50ms' } },
      ],
    });
    t.after(async () => {
      proxy.letGo();
      await fleet.close();
    });
    const [still] = fleet.members;
    assert.ok(still !== undefined);
    const told = (message: string): boolean =>
      still.log().some((line) => line['service'] === service && line.message === message);

    await eventually('it does the work', () => told(takes), processMs);
    await cause(fleet);
    await eventually('it is about to write', () => proxy.isHolding, processMs);
    fleet.pause(still);
    await eventually('another one takes the lease', () => takeServiceLease(url, service), processMs);
    fleet.resume(still);
    proxy.holds = () => false;
    proxy.letGo();
    await eventually('it leaves the work', () => told(leaves), processMs);
    await eventually('what it had begun is over', async () => (await openTransactions(url)) === 0, processMs);
    assert.equal(await written(still.url, url), 0);
  });
