import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { AcpError } from '../../src/contract/errors.ts';
import { classifySqlite } from '../../src/db/sqlite/failure.ts';
import { openSqlite } from '../../src/db/sqlite/open.ts';
import type { Statement } from '../../src/db/statement.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import { openTestStore, temporaryFolder } from '../support/opened-store.ts';
import { agentNames, insertAgent } from './rows.ts';

const isFull = (error: unknown): boolean =>
  error instanceof AcpError && error.code === 'store-unavailable' && /disk of the store is full/.test(error.message);

const wide = (storage: RootStorage, name: string, bytes: number): Statement =>
  storage.db
    .insertInto('agent_versions')
    .values({
      tenant_id: 't',
      name,
      version: 1,
      content: 'x'.repeat(bytes),
      updated_at: 1,
      updated_by: null,
      restored_from: null,
    })
    .compile();

/** Leaves room for some 400 KB, as a disk does that is almost full. */
const almostFull = async (storage: RootStorage): Promise<void> => {
  const { totalBytes } = await storage.dialect.size();
  await sql.raw(`pragma max_page_count = ${totalBytes / 4096 + 100}`).execute(storage.db);
};

test('a full disk is told as that, and what was acknowledged is there', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { storage, close } = await openTestStore(t, file);
  await almostFull(storage);
  await storage.write([wide(storage, 'before', 1000)]);
  await assert.rejects(storage.write([insertAgent(storage.db, 'never'), wide(storage, 'big', 2_000_000)]), isFull);
  await storage.write([wide(storage, 'after', 1000)]);
  await assert.rejects(
    storage.atomic(async (trx) => {
      await trx.insertInto('agents').values({ tenant_id: 't', name: 'never', current_version: 1 }).execute();
      await trx
        .insertInto('agent_versions')
        .values({ ...versionRow, content: 'x'.repeat(2_000_000) })
        .execute();
    }),
    isFull,
  );
  await assert.rejects(
    storage.db
      .insertInto('agent_versions')
      .values({ ...versionRow, content: 'x'.repeat(2_000_000) })
      .execute(),
    isFull,
  );
  await storage.write([wide(storage, 'last', 1000)]);
  await close();
  const again = await openTestStore(t, file);
  const versions = await again.storage.db.selectFrom('agent_versions').select('name').orderBy('name').execute();
  assert.deepEqual(
    versions.map((row) => row.name),
    ['after', 'before', 'last'],
  );
  assert.deepEqual(await agentNames(again.storage.db), []);
  assert.deepEqual(await again.storage.dialect.check(), []);
});

const versionRow = {
  tenant_id: 't',
  name: 'row',
  version: 1,
  updated_at: 1,
  updated_by: null,
  restored_from: null,
};

test('in a group that meets a full disk each unit is told the truth', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { storage, close } = await openTestStore(t, file);
  await almostFull(storage);
  const names = ['a', 'b', 'c', 'd'];
  const results = await Promise.allSettled(
    names.map((name, index) =>
      storage.write([insertAgent(storage.db, name), wide(storage, name, index === 1 ? 2_000_000 : 1000)]),
    ),
  );
  const acknowledged = names.filter((_, index) => results[index]?.status === 'fulfilled');
  for (const result of results) if (result.status === 'rejected') assert.ok(isFull(result.reason));
  assert.equal(results[1]?.status, 'rejected');
  await close();
  const again = await openTestStore(t, file);
  assert.deepEqual(await agentNames(again.storage.db), acknowledged);
});

test('a lock of a foreign program is told as that, and passes', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { storage } = await openTestStore(t, file, { commandTimeoutMs: 20 });
  const foreign = openSqlite({ path: file, tablePrefix: '', synchronous: 'Normal', busyTimeoutMs: 0 });
  t.after(() => foreign.close());
  foreign.exec('begin immediate');
  const isLocked = (error: unknown): boolean =>
    error instanceof AcpError && error.code === 'store-unavailable' && /locked by another process/.test(error.message);
  await assert.rejects(storage.write([insertAgent(storage.db, 'a')]), isLocked);
  await assert.rejects(
    storage.atomic(async () => undefined),
    isLocked,
  );
  assert.deepEqual(await agentNames(storage.db), []);
  foreign.exec('rollback');
  await storage.write([insertAgent(storage.db, 'a')]);
  assert.deepEqual(await agentNames(storage.db), ['a']);
});

test('driver errors are told apart by code, never by words', () => {
  const coded = (code: string) => Object.assign(new Error('database disk image is malformed'), { code });
  assert.equal(classifySqlite(coded('SQLITE_IOERR_WRITE')), 'unavailable');
  assert.equal(classifySqlite(coded('SQLITE_READONLY_DBMOVED')), 'read-only');
  assert.equal(classifySqlite(coded('SQLITE_CORRUPT_INDEX')), 'corrupt');
  assert.equal(classifySqlite(coded('SQLITE_BUSY_SNAPSHOT')), 'busy');
  assert.equal(classifySqlite(coded('SQLITE_CONSTRAINT_UNIQUE')), 'unique-violation');
  assert.equal(classifySqlite(coded('SQLITE_CONSTRAINT_NOTNULL')), null);
  assert.equal(classifySqlite(coded('ECONNRESET')), null);
  assert.equal(classifySqlite(new Error('SQLITE_FULL')), null);
  assert.equal(classifySqlite(undefined), null);
});
