import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { migrations } from '../../migrations/index.ts';
import { AcpError } from '../../src/contract/errors.ts';
import { type Migration, migrate, migrationStatus } from '../../src/db/migrate.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { tableNames } from '../../src/db/tables.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../support/opened-store.ts';
import { forEachStore, openBareStorage, openTestStorage } from '../support/store.ts';
import { halfway, later } from './migration-steps.ts';
import { agentNames } from './rows.ts';

const isRefused = (error: unknown): boolean => error instanceof AcpError && error.code === 'store-unavailable';

forEachStore('the schema is the one that was reviewed (ACP_UPDATE_GOLDEN=1 writes it)', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const golden = join(import.meta.dirname, '..', 'golden', `schema-${store.sql}.sql`);
  const schema = await storage.dialect.describeSchema(storage.db);
  if (process.env['ACP_UPDATE_GOLDEN'] === '1') {
    mkdirSync(dirname(golden), { recursive: true });
    writeFileSync(golden, schema);
  }
  assert.equal(schema, readFileSync(golden, 'utf8'));
});

forEachStore('every table has the prefix and is in the list of tables', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const tables = await storage.db.introspection.getTables();
  assert.deepEqual(
    tables.map((table) => table.name).sort(),
    tableNames.map((name) => storage.dialect.qualifiedName(name)).sort(),
  );
});

forEachStore('migrating twice changes nothing', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const before = await storage.db.selectFrom('schema_migrations').selectAll().execute();
  assert.deepEqual(await migrate(storage, migrations, () => 99), []);
  assert.deepEqual(await storage.db.selectFrom('schema_migrations').selectAll().execute(), before);
  assert.deepEqual(await migrationStatus(storage, migrations), {
    applied: migrations.map((migration) => migration.name),
    pending: [],
  });
});

forEachStore('a step that fails leaves what was before, and the next start completes', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const failing: Migration = {
    name: '9000-failing',
    checksum: 'test',
    up: async (context) => {
      await later.up(context);
      throw new Error('power cut');
    },
  };
  await assert.rejects(
    migrate(storage, [...migrations, failing], () => 1),
    /power cut/,
  );
  assert.deepEqual(await agentNames(storage.db), []);
  assert.deepEqual((await migrationStatus(storage, migrations)).pending, []);
  assert.deepEqual(await migrate(storage, [...migrations, later], () => 1), [later.name]);
  assert.deepEqual(await agentNames(storage.db), ['later']);
});

forEachStore('a store of a newer version is refused and not touched', async (t, store) => {
  const storage = await openTestStorage(t, store);
  await migrate(storage, [...migrations, later], () => 1);
  await assert.rejects(
    migrate(storage, migrations, () => 2),
    (error: unknown) => {
      assert.ok(isRefused(error));
      assert.match(String(error), /another version of acp \(9001-later\)/);
      return true;
    },
  );
  assert.deepEqual(await agentNames(storage.db), ['later']);
});

const last = migrations.at(-1)?.name ?? '';
const before = migrations.at(-2)?.name ?? '';

forEachStore(
  'a version starts on a store of a newer one whose migrations say that it can work with them',
  async (t, store) => {
    const storage = await openTestStorage(t, store);
    await migrate(storage, [...migrations, { ...later, worksFrom: last }], () => 1);
    assert.deepEqual(await migrate(storage, migrations, () => 2), []);
    assert.deepEqual(await migrationStatus(storage, migrations), {
      applied: [...migrations.map(({ name }) => name), later.name],
      pending: [],
    });
    // The version before this one lacks what the newer one needs.
    await assert.rejects(
      migrate(storage, migrations.slice(0, -1), () => 2),
      { code: 'store-unavailable', message: /another version of acp \(.*9001-later\)/ },
    );
    assert.deepEqual(await agentNames(storage.db), ['later']);
  },
);

forEachStore('of several newer migrations each has to be one that an older version can work with', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const bearable = { ...halfway(() => Promise.resolve()), worksFrom: before };
  await migrate(storage, [...migrations, bearable, { ...later, worksFrom: bearable.name }], () => 1);
  await assert.rejects(
    migrate(storage, migrations, () => 2),
    { code: 'store-unavailable', message: /another version of acp \(9001-later\)/ },
  );
  await assert.rejects(
    migrate(storage, [...migrations, { ...bearable, checksum: 'changed' }], () => 2),
    isRefused,
  );
  assert.deepEqual(await migrate(storage, [...migrations, bearable], () => 2), []);
});

forEachStore(
  'a store that was made before migrations said so is completed, and its newer migrations are refused',
  async (t, store) => {
    const storage = await openTestStorage(t, store);
    await storage.db.schema.alterTable('schema_migrations').dropColumn('works_from').execute();
    assert.deepEqual((await migrationStatus(storage, migrations)).pending, []);
    await assert.rejects(migrationStatus(storage, migrations.slice(0, -1)), isRefused);
    assert.deepEqual(await migrate(storage, [...migrations, { ...later, worksFrom: last }], () => 2), [later.name]);
    assert.deepEqual(await migrate(storage, migrations, () => 3), []);
  },
);

forEachStore('a released migration that was changed or put elsewhere is refused', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const [first] = migrations;
  assert.ok(first !== undefined);
  await assert.rejects(
    migrate(storage, [{ ...first, name: '0001-renamed' }], () => 2),
    isRefused,
  );
  await assert.rejects(
    migrate(storage, [later, ...migrations], () => 2),
    isRefused,
  );
});

forEachStore('an empty store has everything pending, and looking does not change it', async (t, store) => {
  const storage = await openBareStorage(t, store);
  const { applied, pending } = await migrationStatus(storage, migrations);
  assert.deepEqual([applied, pending], [[], migrations.map((migration) => migration.name)]);
  assert.deepEqual(await storage.db.introspection.getTables(), []);
});

test('kill -9 during a migration: the next start completes it', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const child = spawn(process.execPath, [join(import.meta.dirname, 'migrating-process.ts'), file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'close');
  const { storage, pending } = await openTestStore(t, file, {
    migrations: [...migrations, halfway(() => Promise.resolve()), later],
  });
  assert.deepEqual(pending, []);
  assert.deepEqual(await agentNames(storage.db), ['first-half', 'later', 'second-half']);
  assert.deepEqual(await storage.dialect.check(), []);
});

test('two processes that start on one new file: one migrates, the other is told who owns it', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const starts = await Promise.allSettled([openStorage(storeOptions(file)), openStorage(storeOptions(file))]);
  const opened = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  assert.equal(opened.length, 1);
  for (const store of opened) await store.close();
});

forEachStore('a migration that was changed after its release is refused', async (context, store) => {
  const storage = await openTestStorage(context, store);
  const changed = migrations.map((migration) => ({ ...migration, checksum: 'changed' }));
  await assert.rejects(migrationStatus(storage, changed), { code: 'store-unavailable', message: /changed migrations/ });
});
