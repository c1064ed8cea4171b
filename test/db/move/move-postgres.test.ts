import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import { type MoveOptions, moveStore } from '../../../src/db/move/move-store.ts';
import { type OpenOptions, openStorage } from '../../../src/db/open-storage.ts';
import { servingLock } from '../../../src/db/postgres/serving-lock.ts';
import { tableNames } from '../../../src/db/tables.ts';
import { signingKeyMove, verifyTrails } from '../../../src/features/audit/index.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';
import { createDatabase, findPostgres, withPostgres } from '../../support/postgres-server.ts';
import { insertAgent } from '../rows.ts';
import { fillEveryTable } from './full-store.ts';
import { moveUntilKilled } from './killed-move.ts';

const refusal = (words: RegExp, code: string) => (error: unknown) =>
  error instanceof AcpError && words.test(error.message) && error.code === code;

const skip = findPostgres() === null ? 'there is no server of PostgreSQL' : false;

const onServer = (connectionString: string, schema = 'service'): OpenOptions =>
  storeOptions('', {
    provider: 'Postgres',
    postgres: { connectionString, directConnectionString: null, schema, maxConnections: 4 },
  });

/** A full store in a file, and an empty database. */
const bothKinds = async (t: TestContext, rows = 30) => {
  const database = await createDatabase();
  t.after(() => database.drop());
  const folder = temporaryFolder(t);
  const file = storeOptions(join(folder, 'from.db'));
  const source = await openTestStore(t, file.location);
  await fillEveryTable(source.storage, rows, { withFiles: false });
  await source.close();
  const server = onServer(database.url);
  const move = (options: Partial<MoveOptions> = {}) =>
    moveStore({ from: file, to: server, verifyTrails, signingKey: signingKeyMove, ...options });
  return { folder, file, server, url: database.url, move };
};

test('a store moves to PostgreSQL and back with the same rows and hashes', { skip }, async (t) => {
  const { folder, server, url, move } = await bothKinds(t);
  const there = await move();
  assert.equal(there.tables.length, tableNames.length - 1);
  assert.ok(there.tables.every(({ table, rows }) => rows === (table === 'attachments' ? 0 : 30)));
  await withPostgres(url, async (client) => {
    const { rows } = await client.query(`select count(*)::int as count from service.agents`);
    assert.equal(rows[0].count, 30);
  });
  const back = storeOptions(join(folder, 'back.db'));
  const returned = await move({ from: server, to: back });
  assert.deepEqual(returned.tables, there.tables);
  const schema = onServer(url, 'other');
  assert.deepEqual((await move({ from: server, to: schema })).tables, there.tables, 'also between two schemas');
  for (const options of [server, back, schema]) await (await openStorage(options)).close();
});

test('a move to PostgreSQL that is killed is gone on with, and no service starts on a part', { skip }, async (t) => {
  const { file, server, move } = await bothKinds(t, 2100);
  for (const stretches of [1, 2, 61, 130]) {
    assert.equal(await moveUntilKilled(file, server, stretches), null, 'killed');
    await assert.rejects(openStorage(server), refusal(/is the target of a move from .*from\.db/, 'store-unavailable'));
  }
  const report = await move();
  assert.equal(report.resumed, true);
  assert.ok(report.tables.every(({ table, rows }) => rows === (table === 'attachments' ? 0 : 2100)));
  await (await openStorage(server)).close();
});

test('what PostgreSQL cannot hold is told by a preview, and refused by the move', { skip }, async (t) => {
  const { file, move } = await bothKinds(t);
  const source = await openTestStore(t, file.location);
  await source.storage.db
    .updateTable('runs')
    .set({ error_message: 'a\0b' })
    .where('error_message', 'like', '%Zebra%')
    .execute();
  await source.close();
  const { findings } = await move({ dryRun: true });
  const told = findings.filter((finding) => /of runs: error_message holds U\+0000/.test(finding));
  assert.ok(told.length > 0);
  await assert.rejects(
    move(),
    refusal(/cannot hold the row .* of runs: error_message holds U\+0000/, 'validation-failed'),
  );
});

test('a store in PostgreSQL that is served is neither moved nor moved to', { skip }, async (t) => {
  const { folder, file, server, url, move } = await bothKinds(t);
  await move();
  const back = storeOptions(join(folder, 'back.db'));
  await withPostgres(url, async (client) => {
    await client.query('select pg_advisory_lock_shared(hashtextextended($1, 0))', [servingLock('service')]);
    for (const ends of [
      { from: server, to: back },
      { from: file, to: server },
    ])
      await assert.rejects(move(ends), refusal(/is served by other processes/, 'store-unavailable'));
  });
  await move({ from: server, to: back });
});

test('nobody writes to a store in PostgreSQL while it is moved, and everybody reads it', { skip }, async (t) => {
  const { folder, server, url, move } = await bothKinds(t);
  await move();
  let isTried = false;
  await move({
    from: server,
    to: storeOptions(join(folder, 'back.db')),
    async verifyTrails(storage) {
      await withPostgres(url, async (client) => {
        await client.query(`set lock_timeout = '200ms'`);
        assert.equal((await client.query('select * from service.agents')).rowCount, 30);
        await assert.rejects(client.query(`delete from service.agents`), { code: '55P03' });
      });
      await assert.rejects(move({ from: server, to: storeOptions(join(folder, 'third.db')) }), /is being moved/);
      isTried = true;
      return verifyTrails(storage);
    },
  });
  assert.ok(isTried);
  const serving = await openTestStore(t, null, { ...server, provider: 'Postgres' });
  await serving.storage.write([insertAgent(serving.storage.db, 'later')]);
});
