import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { migrations } from '../../../migrations/index.ts';
import { migrationStatus } from '../../../src/db/migrate.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { eventually, inTime, processMs } from '../../support/eventually.ts';
import { storeOptions } from '../../support/opened-store.ts';
import { createDatabase, executeAt, withPostgres } from '../../support/postgres-server.ts';
import { halfway, later } from '../migration-steps.ts';
import { agentNames } from '../rows.ts';
import { skip } from './opened.ts';

const all = [...migrations, halfway(() => Promise.resolve()), later];
const complete = ['first-half', 'later', 'second-half'];

const openDatabase = async (t: TestContext) => {
  const { url, drop } = await createDatabase();
  t.after(drop);
  const children = new Set<ChildProcess>();
  t.after(async () => {
    for (const child of children)
      if (child.exitCode === null && child.signalCode === null) {
        const closed = once(child, 'close');
        child.kill('SIGKILL');
        await closed;
      }
  });
  return {
    url,
    /** A process that migrates as it starts. */
    start(place: 'before' | 'middle' | 'after' | 'none') {
      const file = join(import.meta.dirname, '../migrating-process.ts');
      const child = spawn(process.execPath, [file, url, place], { stdio: ['ignore', 'pipe', 'inherit'] });
      children.add(child);
      return child;
    },
    async open() {
      const postgres = { connectionString: url, directConnectionString: null, schema: 'service', maxConnections: 4 };
      const opened = await openStorage(storeOptions('', { provider: 'Postgres', postgres, migrations: all }));
      t.after(() => opened.close());
      return opened.storage;
    },
  };
};

const killed = async (child: ChildProcess): Promise<void> => {
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
};

for (const [place, applied] of [
  ['before', 0],
  ['middle', 0],
  ['after', 1],
] as const)
  test(`kill -9 ${place === 'middle' ? 'in the middle of a migration' : `${place} what a migration writes`} on a server leaves whole steps, and the next start completes them`, {
    skip,
  }, async (t) => {
    const database = await openDatabase(t);
    const child = database.start(place);
    assert.ok(child.stdout !== null);
    await inTime('the process stands in a migration', once(child.stdout, 'data'), processMs);
    await killed(child);
    const names = (await executeAt(database.url, 'select name from service.schema_migrations where name > $$9$$')) as {
      rows: unknown[];
    };
    assert.equal(names.rows.length, applied);
    const rows = (await executeAt(database.url, 'select name from service.agents')) as { rows: unknown[] };
    assert.equal(rows.rows.length, 2 * applied, 'nothing is half applied');
    const storage = await database.open();
    assert.deepEqual(await agentNames(storage.db), complete);
    assert.deepEqual((await migrationStatus(storage, all)).pending, []);
  });

test('five processes that start at once on an empty database migrate it together, each step once', {
  skip,
}, async (t) => {
  const database = await openDatabase(t);
  const codes = await Promise.all(
    Array.from({ length: 5 }, async () => (await once(database.start('none'), 'close'))[0] as number),
  );
  assert.deepEqual(codes, [0, 0, 0, 0, 0]);
  const storage = await database.open();
  assert.deepEqual(await agentNames(storage.db), complete);
});

test('a process that is killed while it has the lock of migrations does not keep the others from them', {
  skip,
}, async (t) => {
  const database = await openDatabase(t);
  const holder = database.start('middle');
  assert.ok(holder.stdout !== null);
  await inTime('the process stands in a migration', once(holder.stdout, 'data'), processMs);
  const waiting = database.start('none');
  const ended = once(waiting, 'close');
  const asksFor = `select 1 from pg_stat_activity where datname = current_database() and application_name = 'acp'
    and (query like '%pg_try_advisory_xact_lock%' or query = 'rollback') and query not like '%pg_stat_activity%'`;
  await eventually(
    'the other one waits',
    async () => {
      const { rows } = (await executeAt(database.url, asksFor)) as { rows: unknown[] };
      return rows.length > 1;
    },
    processMs,
  );
  assert.equal(waiting.exitCode, null);
  await killed(holder);
  assert.deepEqual((await inTime('the other one goes on', ended, processMs))[0], 0);
  const storage = await database.open();
  assert.deepEqual(await agentNames(storage.db), complete);
});

test('a process with nothing to migrate waits for nobody who has the lock of migrations', { skip }, async (t) => {
  const database = await openDatabase(t);
  await database.open();
  await withPostgres(database.url, async (other) => {
    await other.query('begin');
    await other.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', ['acp migrations of service']);
    const storage = await inTime('a second process opens the store', database.open(), processMs);
    assert.deepEqual(await agentNames(storage.db), complete);
  });
});
