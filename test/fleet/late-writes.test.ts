import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, openStream } from '../e2e/wire.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { createDatabase, withPostgres } from '../support/postgres-server.ts';
import { leaves, takes } from './lease-history.ts';
import { skip } from './members.ts';

interface LateWrite {
  readonly service: string;
  /** In what the service writes, and in nothing else. */
  readonly text: string;
  readonly processes: number;
  /** Gives the service something to do. */
  readonly cause: (fleet: Fleet) => Promise<void>;
  /** How many rows of it there are. */
  readonly written: string;
}

const kinds: readonly LateWrite[] = [
  {
    service: 'retention',
    text: '"everyTenant":true',
    processes: 1,
    cause: async () => undefined,
    written: `select count(*) as count from service.jobs where handler_key = 'acp.retention'`,
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
    written: `select count(*) as count from service.runs where status = 'Failed'`,
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
    const count = (sql: string): Promise<number> =>
      withPostgres(url, async (client) => (await client.query<{ count: number }>(sql)).rows[0]?.count ?? 0);

    await eventually('it does the work', () => told(takes), processMs);
    await cause(fleet);
    await eventually('it is about to write', () => proxy.isHolding, processMs);
    fleet.pause(still);
    const time = `extract(epoch from clock_timestamp()) * 1000`;
    const taken = `with taken as (update service.service_leases
        set owner = 'another', term = term + 1, lease_until = ${time} + 600000
        where name = '${service}' and lease_until <= ${time} returning 1) select count(*) as count from taken`;
    await eventually('another one takes the lease', async () => (await count(taken)) === 1, processMs);
    fleet.resume(still);
    proxy.holds = () => false;
    proxy.letGo();
    await eventually('it leaves the work', () => told(leaves), processMs);
    const open = `select count(*) as count from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`;
    await eventually('what it had begun is over', async () => (await count(open)) === 0, processMs);
    assert.equal(await count(written), 0);
  });
