// A process of its own: its services and its pooler have settings and ends of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type ServiceProcess, until } from '../e2e/support.ts';
import { call } from '../e2e/wire.ts';
import { openFleet } from '../support/fleet.ts';
import { type Pooler, startPooler, whyNoPooler } from '../support/pooler.ts';
import { createDatabase, executeAt, findPostgres } from '../support/postgres-server.ts';
import { underLoad } from './under-load.ts';

const skip = (findPostgres() === null && 'no PostgreSQL server is to be found') || (whyNoPooler() ?? false);

/** Two connections to the server for everybody, as small as a pool may be. */
const withPooler = async (work: (pooler: Pooler, database: string) => Promise<void>): Promise<void> => {
  const database = await createDatabase();
  try {
    const pooler = await startPooler({ database: database.url, serverConnections: 2, clientConnections: 20 });
    try {
      await work(pooler, database.url);
    } finally {
      await pooler.close();
    }
  } finally {
    await database.drop();
  }
};

const readiness = async ({ url }: ServiceProcess): Promise<unknown> =>
  (await call(`${url}/health/ready`)).json()['status'];
const untilAll = async (members: readonly ServiceProcess[], status: string): Promise<void> => {
  for (const member of members)
    await until(`readiness to be ${status}`, async () => (await readiness(member)) === status);
};

/** What sessions of the server still have, which a pooler lends to the next one. */
const leftInSessions = async (pooler: Pooler, database: string): Promise<unknown> => {
  const locks = `select count(*)::int as count from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())`;
  const statements = 'select count(*)::int as count from pg_prepared_statements';
  const count = async (url: string, sql: string): Promise<number | undefined> =>
    ((await executeAt(url, sql)) as { rows: { count: number }[] }).rows[0]?.count;
  // A session lists its own statements alone: one that the pooler has lent is asked.
  return { locks: await count(database, locks), statements: await count(pooler.url, statements) };
};

test('two processes behind a pooler in transaction mode do everything, also while it is restarted', {
  skip,
  timeout: 180_000,
}, async () => {
  await withPooler(async (pooler, database) => {
    const { history, approved, findings } = await underLoad(
      { processes: 2, database: pooler.url, directDatabase: database },
      1,
      async ({ members }) => {
        await untilAll(members, 'Healthy');
        await pause(3000);
        await pooler.restart();
        await untilAll(members, 'Healthy');
        await pause(3000);
        // The locks of the connections that listen, one for each process, do not come through the pooler.
        assert.deepEqual(await leftInSessions(pooler, database), { locks: members.length, statements: 0 });
      },
    );
    assert.deepEqual(findings, []);
    // What is proved of nothing is not proved.
    assert.ok(history.streams.size > 3 && history.answers.size > 3);
    assert.ok(history.queued.size > 0 && history.orders.size > 0 && approved.size > 0);
    assert.ok(history.limited.size > 0 && [...history.turns.values()].flat().length > 1);
  });
});

test('processes that start at once without a direct address make the schema together, ask the store, and say so', {
  skip,
  timeout: 180_000,
}, async () => {
  await withPooler(async (pooler, database) => {
    const fleet = await openFleet({ processes: 0, database: pooler.url });
    try {
      const [here, there] = await Promise.all([fleet.join(), fleet.join()]);
      await untilAll(fleet.members, 'Degraded');
      for (const member of fleet.members) {
        const says = ({ message, error }: { message: string; error?: unknown }): boolean =>
          /are not heard/.test(message) && /DirectConnectionString/.test(JSON.stringify(error));
        assert.ok(await until('the log to say why', () => member.log().some(says)));
      }
      // What one of them has changed the other one finds by itself.
      const body = { name: 'clerk', model: { provider: 'demo', model: 'm' } };
      assert.equal((await call(`${here.url}/api/agents`, { body })).status, 201);
      const ask = () => call(`${there.url}/api/agents/clerk/run`, { body: { message: 'Hi', stream: false } });
      await until('the agent at the other one', async () => (await ask()).status === 200);
      const stop = { scope: 'Agent', agentName: 'clerk', reason: 'fire' };
      assert.ok((await call(`${here.url}/api/emergency/stop`, { body: stop })).status < 300);
      await until('the stop at the other one', async () => /emergency-stopped/.test((await ask()).text));
      assert.deepEqual(await leftInSessions(pooler, database), { locks: 0, statements: 0 });
    } finally {
      await fleet.close();
    }
  });
});
