import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import { AcpError } from '../../../src/contract/errors.ts';
import { isoTime } from '../../../src/core/iso-time.ts';
import { type MoveOptions, moveStore } from '../../../src/db/move/move-store.ts';
import { type OpenOptions, openStorage } from '../../../src/db/open-storage.ts';
import { partitionAt, partitionedTables } from '../../../src/db/postgres/partition-ranges.ts';
import { servingLock } from '../../../src/db/postgres/serving-lock.ts';
import { tableNames } from '../../../src/db/tables.ts';
import { entryHash } from '../../../src/features/audit/chain.rules.ts';
import { signingKeyMove, verifyTrails } from '../../../src/features/audit/index.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';
import { createDatabase, findPostgres, withPostgres } from '../../support/postgres-server.ts';
import { insertAgent } from '../rows.ts';
import { fillEveryTable, longAmongShort } from './full-store.ts';
import { moveUntilKilled } from './killed-move.ts';

const refusal = (words: RegExp, code: string) => (error: unknown) =>
  error instanceof AcpError && words.test(error.message) && error.code === code;

const weekMs = 7 * 86_400_000;

const idAt = (timeMs: number): string => {
  const hex = timeMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`;
};

/** The kind of partition that the input of each run lies in. */
const placesOf = async (url: string, ids: readonly string[]): Promise<(string | undefined)[]> => {
  const { rows } = await withPostgres(url, (client) =>
    client.query<{ id: string; place: string }>(
      `select run_id as id, substr(split_part(tableoid::regclass::text, '.', 2), 12) as place from service.run_inputs`,
    ),
  );
  const places = new Map(rows.map(({ id, place }) => [id, place.replace(/^\d{8}$/, 'week')]));
  return ids.map((id) => places.get(id));
};

const skip = findPostgres() === null ? 'there is no server of PostgreSQL' : false;

const onServer = (connectionString: string, schema = 'service'): OpenOptions =>
  storeOptions('', {
    provider: 'Postgres',
    postgres: { connectionString, directConnectionString: null, schema, maxConnections: 4 },
  });

/** A full store in a file, and an empty database. */
const bothKinds = async (t: TestContext, rows: Parameters<typeof fillEveryTable>[1] = 30) => {
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

test('rows of months ago and of times ahead go to PostgreSQL and back, from one way of lying apart to another', {
  skip,
}, async (t) => {
  const { folder, server, url, move } = await bothKinds(t, 3);
  const source = await openTestStore(t, join(folder, 'from.db'));
  const weeks = [-60, -8, -5, -1, 0, 1, 4];
  const ids = weeks.map((week) => idAt(Date.now() + week * weekMs));
  for (const runId of ids) {
    await source.storage.db
      .insertInto('run_inputs')
      .values({ run_id: runId, messages: runId, context: null })
      .execute();
    await source.storage.db
      .insertInto('run_events')
      .values({ run_id: runId, first_sequence: 0, last_sequence: 0, events: '[]' })
      .execute();
  }
  await source.close();
  const there = await move();
  const served = await openStorage(server);
  const { partitions } = served.storage.dialect;
  // What came before its partition is in the default one, and moves into it as that is made.
  await partitions?.prepare(Date.now() + 4 * weekMs);
  assert.deepEqual(await placesOf(url, ids), ['earlier', 'earlier', 'earlier', 'earlier', 'earlier', 'week', 'week']);
  await served.close();

  // As months later: each week by itself, the oldest one gone, and one away by hand, which is not of the store then.
  await withPostgres(url, async (client) => {
    for (const table of ['run_inputs', 'run_events']) {
      await client.query(`alter table service.${table} detach partition service.${table}_earlier`);
      const entry = partitionedTables.find((each) => each.table === table);
      assert.ok(entry !== undefined);
      for (const week of weeks.slice(1, 5)) {
        const { name, from, below } = partitionAt(entry, Date.now() + week * weekMs);
        await client.query(
          `create table service.${name} partition of service.${table} for values from ('${from}') to ('${below}')`,
        );
      }
      await client.query(`insert into service.${table} select * from service.${table}_earlier`);
      await client.query(`drop table service.${table}_earlier`);
    }
  });
  const weekly = ['default', 'week', 'week', 'week', 'week', 'week', 'week'];
  assert.deepEqual(await placesOf(url, ids), weekly);
  const back = storeOptions(join(folder, 'back.db'));
  const returned = await move({ from: server, to: back });
  assert.deepEqual(returned.tables, there.tables);
  const other = onServer(url, 'other');
  assert.deepEqual((await move({ from: server, to: other })).tables, there.tables);
  const again = await openTestStore(t, back.location);
  const inputs = await again.storage.db.selectFrom('run_inputs').select('messages').execute();
  assert.deepEqual(
    ids.filter((id) => !inputs.some(({ messages }) => messages === id)),
    [],
  );
});

test('a move to PostgreSQL that is killed is gone on with, and no service starts on a part', { skip }, async (t) => {
  const { file, server, move } = await bothKinds(t, longAmongShort);
  for (const stretches of [1, 2, 35, 75]) {
    assert.equal(await moveUntilKilled(file, server, stretches), null, 'killed');
    await assert.rejects(openStorage(server), refusal(/is the target of a move from .*from\.db/, 'store-unavailable'));
  }
  const report = await move();
  assert.equal(report.resumed, true);
  assert.ok(report.tables.every(({ table, rows }) => rows === (table === 'attachments' ? 0 : longAmongShort(table))));
  await (await openStorage(server)).close();
});

test('a move to PostgreSQL writes U+0000 of an older SQLite store as U+FFFD, in keys too', { skip }, async (t) => {
  const { file, url, move } = await bothKinds(t);
  const source = await openTestStore(t, file.location);
  const { db } = source.storage;
  const held = sql<string>`'a' || char(0) || 'b'`;
  await db.updateTable('runs').set({ error_message: held }).where('error_message', 'like', '%Zebra%').execute();
  const { id } = await db.selectFrom('runs').select('id').limit(1).executeTakeFirstOrThrow();
  for (const key of [held, sql<string>`'a'`, sql<string>`'ab'`])
    await db.insertInto('run_labels').values({ tenant_id: 'nul', key, value: held, run_id: id }).execute();
  await source.close();
  const { findings } = await move({ dryRun: true });
  assert.ok(!findings.some((finding) => finding.includes('cannot hold')));
  await move();
  await withPostgres(url, async (client) => {
    const runs = await client.query("select 1 from service.runs where error_message = U&'a\\FFFDb'");
    assert.ok(runs.rows.length > 0);
    const labels = await client.query("select key, value from service.run_labels where tenant_id = 'nul' order by key");
    assert.deepEqual(
      labels.rows.map(({ key, value }) => [key, value]),
      ['a', 'ab', 'a\uFFFDb'].map((key) => [key, 'a\uFFFDb']),
    );
  });
});

test('a move is refused where two keys of an older SQLite store differ in U+0000 alone, and says which', {
  skip,
}, async (t) => {
  const { file, move } = await bothKinds(t);
  const source = await openTestStore(t, file.location);
  const { db } = source.storage;
  const { id } = await db.selectFrom('runs').select('id').limit(1).executeTakeFirstOrThrow();
  const key = sql<string>`'a' || char(0) || 'b'`;
  for (const one of [key, 'a\uFFFDb'])
    await db.insertInto('run_labels').values({ tenant_id: 'nul', key: one, value: 'v', run_id: id }).execute();
  await source.close();
  await assert.rejects(
    move(),
    refusal(/cannot hold the row .* of run_labels: its key, .*another row/, 'validation-failed'),
  );
});

test('AUDIT-5 a chain of an older SQLite store with U+0000 in the name of an actor is complete after a move', {
  skip,
}, async (t) => {
  const { file, server, move } = await bothKinds(t);
  const source = await openTestStore(t, file.location);
  const { db } = source.storage;
  const actor = 'key:a\0b';
  const entry = { id: idAt(1), tenantId: 'nul', actor, action: 'agent.create', entity: 'agent:x', before: null };
  const fields = { ...entry, after: null, createdAt: isoTime(1), previousHash: null };
  const hash = entryHash(fields);
  await db
    .insertInto('audit_entries')
    .values({
      ...{ tenant_id: 'nul', id: entry.id, actor: sql<string>`'key:a' || char(0) || 'b'`, action: entry.action },
      ...{ entity: entry.entity, before: null, after: null, created_at: 1, previous_hash: null, hash },
    })
    .execute();
  await db
    .insertInto('audit_heads')
    .values({ tenant_id: 'nul', entry_count: 1, newest_id: entry.id, newest_hash: hash, newest_at: 1 })
    .execute();
  await source.close();
  await move();
  const target = await openStorage(server);
  t.after(() => target.close());
  const verified = async () => (await verifyTrails(target.storage)).find(({ tenantId }) => tenantId === 'nul')?.status;
  assert.equal(await verified(), 'Valid');
  await target.storage.db
    .updateTable('audit_entries')
    .set({ actor: 'key:other' })
    .where('tenant_id', '=', 'nul')
    .execute();
  assert.equal(await verified(), 'Broken');
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
