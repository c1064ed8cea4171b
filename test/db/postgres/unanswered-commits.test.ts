import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { isCommitAlone, startCuttingProxy } from '../../support/cutting-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { storeOptions } from '../../support/opened-store.ts';
import { type FaultyPostgres, startFaultyPostgres } from '../../support/postgres-outage.ts';
import { executeAt, whyNoStandby } from '../../support/postgres-server.ts';
import { agentNames, insertAgent } from '../rows.ts';
import { skip } from './opened.ts';

const openStore = async (t: TestContext, url: string): Promise<RootStorage> => {
  // One for its statements, so that none is left by which the server could be asked before it is open again.
  const postgres = { connectionString: url, directConnectionString: null, schema: 'service', maxConnections: 2 };
  const opened = await openStorage(storeOptions('', { provider: 'Postgres', postgres, commandTimeoutMs: 10_000 }));
  t.after(() => opened.close());
  return opened.storage;
};

// Nobody but the tests takes ids of transactions: one that a crash has lost is given to whoever comes next.
const settings = ['wal_level=replica', 'max_wal_senders=4', 'autovacuum=off'];

const startServer = async (t: TestContext, source: string | null = null): Promise<FaultyPostgres> => {
  const server = await startFaultyPostgres(undefined, { settings, source });
  t.after(() => server.close());
  return server;
};

/** A unit of work whose commit is cut, and what its server goes through before anybody is let in again. */
const cutAtCommit = async (
  t: TestContext,
  server: FaultyPostgres,
  kind: 'before' | 'after',
  fate: (lead: (url: string) => void) => Promise<void>,
) => {
  const proxy = await startCuttingProxy(server.url);
  t.after(() => proxy.close());
  const storage = await openStore(t, proxy.url);
  await storage.batch.write([insertAgent(storage.db, 'before')]);
  let attempts = 0;
  let isCut = false;
  proxy.plan = (piece) => {
    if (!isCommitAlone(piece)) return null;
    proxy.plan = () => null;
    proxy.refuse();
    isCut = true;
    return kind;
  };
  const insert = insertAgent(storage.db, 'unit');
  const end = storage
    .transaction(async (unit) => {
      attempts += 1;
      await unit.write([insert]);
      return 'done';
    })
    .catch((error: unknown) => error);
  await eventually('the commit is cut', () => isCut);
  // The server has answered by then: what it said is in the log that it reads when it starts.
  if (kind === 'after') {
    const direct = await openStore(t, server.url);
    await eventually('it is committed', async () => (await agentNames(direct.db)).includes('unit'));
    await direct.close();
  }
  await fate(proxy.lead);
  proxy.open();
  return { end: await end, attempts: () => attempts, names: () => agentNames(storage.db) };
};

test('a unit whose commit a server that crashed did not get is done again', { skip }, async (t) => {
  const server = await startServer(t);
  const { end, attempts, names } = await cutAtCommit(t, server, 'before', async () => {
    // The log has the unit's id on the disk, so that it is nobody else's afterwards.
    await executeAt(server.url, 'checkpoint');
    await server.crash();
    await server.start();
  });
  assert.deepEqual([end, attempts()], ['done', 2]);
  assert.deepEqual(await names(), ['before', 'unit']);
});

test('a unit that was committed before an orderly restart is known to be', { skip }, async (t) => {
  const server = await startServer(t);
  const { end, attempts, names } = await cutAtCommit(t, server, 'after', async () => {
    await server.shutDown();
    await server.start();
  });
  assert.deepEqual([end, attempts()], ['done', 1]);
  assert.deepEqual(await names(), ['before', 'unit']);
});

test('after a crash an id that was committed may be that of another transaction: nobody can tell', {
  skip,
}, async (t) => {
  const server = await startServer(t);
  const { end, attempts, names } = await cutAtCommit(t, server, 'after', async () => {
    await server.crash();
    await server.start();
  });
  assert.ok(end instanceof AcpError && end.code === 'store-unavailable');
  assert.match(end.message, /look whether it was/);
  assert.equal(attempts(), 1);
  assert.deepEqual(await names(), ['before', 'unit']);
});

const skipStandby = skip || (whyNoStandby() ?? false);

/** One that follows the server until now. */
const standbyOf = async (t: TestContext, server: FaultyPostgres): Promise<FaultyPostgres> => {
  const standby = await startServer(t, server.url);
  await standby.shutDown();
  return standby;
};

test('a unit that the standby which takes over never had is done again there', { skip: skipStandby }, async (t) => {
  const server = await startServer(t);
  await (await openStore(t, server.url)).close();
  const standby = await standbyOf(t, server);
  const { end, attempts, names } = await cutAtCommit(t, server, 'after', async (lead) => {
    await server.crash();
    await standby.start();
    await executeAt(standby.url, 'select pg_promote()');
    lead(standby.url);
  });
  assert.deepEqual([end, attempts()], ['done', 2]);
  assert.deepEqual(await names(), ['unit']);
});

test('an id that the standby which takes over has given to others says nothing of the unit', {
  skip: skipStandby,
}, async (t) => {
  const server = await startServer(t);
  await (await openStore(t, server.url)).close();
  const standby = await standbyOf(t, server);
  const { end, attempts, names } = await cutAtCommit(t, server, 'after', async (lead) => {
    await server.crash();
    await standby.start();
    await executeAt(standby.url, 'select pg_promote()');
    for (let count = 0; count < 20; count += 1) await executeAt(standby.url, 'select pg_current_xact_id()');
    lead(standby.url);
  });
  assert.ok(end instanceof AcpError && end.code === 'store-unavailable');
  assert.equal(attempts(), 1);
  assert.deepEqual(await names(), []);
});
