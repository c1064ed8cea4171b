import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, openStream } from '../e2e/wire.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { openTransactions, rowsIn, takeServiceLease } from '../support/postgres-store.ts';
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
    const fleet = await openFleet({
      processes,
      database: proxy.url,
      service: {
        SingletonExecution: { Enabled: true, LeaseDuration: '3s' },
        Retention: { Enabled: true },
        RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '3s', ScanInterval: '1s' },
      },
      script: [{ reply: { text: 'word '.repeat(400), chunkSize: 5, delay: '50ms' } }],
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
