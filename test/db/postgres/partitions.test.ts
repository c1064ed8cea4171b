import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { migrations } from '../../../migrations/index.ts';
import { migrate } from '../../../src/db/migrate.ts';
import type { OpenOptions } from '../../../src/db/open-storage.ts';
import type { StorePartitions } from '../../../src/db/partitions.ts';
import { partitionAt, partitionedTables } from '../../../src/db/postgres/partition-ranges.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { withPostgres } from '../../support/postgres-server.ts';
import { openOnServer, skip } from './opened.ts';

/** Of a moment, whatever ids were made before: those of the service never go back. */
const newId = (timeMs = Date.now()): string => {
  const hex = timeMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`;
};

const weekMs = 7 * 86_400_000;
const at = migrations.findIndex(({ name }) => name === '0032-partitions');
const withoutPartitions = migrations.slice(0, at);
const withPartitions = migrations.slice(0, at + 1);
const tables = partitionedTables.map(({ table }) => table);

const partitionsOf = ({ dialect }: RootStorage): StorePartitions => {
  assert.ok(dialect.partitions !== undefined);
  return dialect.partitions;
};

const insertInput = async ({ db }: RootStorage, runId: string, messages = '[]'): Promise<void> => {
  await db.insertInto('run_inputs').values({ run_id: runId, messages, context: null }).execute();
};

/** In which partition rows of a table lie, by id. */
const placesOf = async (url: string, table = 'run_inputs', by = 'run_id'): Promise<Record<string, string>> => {
  const { rows } = await withPostgres(url, (client) =>
    client.query(`select ${by} as id, split_part(tableoid::regclass::text, '.', 2) as place from service.${table}`),
  );
  return Object.fromEntries(rows.map(({ id, place }) => [id, place]));
};

const namesOf = async (url: string, table: string): Promise<string[]> => {
  const { rows } = await withPostgres(url, (client) =>
    client.query(
      `select c.relname as name from pg_inherits join pg_class c on c.oid = inhrelid
       where inhparent = $1::regclass order by 1`,
      [`service.${table}`],
    ),
  );
  return rows.map(({ name }) => name);
};

const execute = (url: string, sql: string) => withPostgres(url, (client) => client.query(sql));

/** What is told of failures. */
const toldLog = () => {
  const lines: { readonly level: string; readonly message: string; readonly fields: Record<string, unknown> }[] = [];
  const line = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level, message, fields });
  return { lines, log: { error: line('error'), warn: line('warn') } as unknown as OpenOptions['log'] };
};

const inputs = partitionedTables.find(({ table }) => table === 'run_inputs');
assert.ok(inputs !== undefined);
const thisWeek = partitionAt(inputs, Date.now());
const nextWeek = partitionAt(inputs, Date.now() + weekMs);

test('a new store has partitions for the present and the time ahead, and a look makes none', { skip }, async (t) => {
  const { storage, url } = await openOnServer(t);
  for (const entry of partitionedTables) {
    const next = partitionAt(entry, Date.now() + entry.widthMs).name;
    assert.deepEqual(await namesOf(url, entry.table), [next, `${entry.table}_default`, `${entry.table}_earlier`]);
  }
  await partitionsOf(storage).prepare(Date.now());
  assert.deepEqual(partitionsOf(storage).missing(), []);
  assert.equal((await namesOf(url, 'run_events')).length, 3);
});

test('rows of a store that is migrated survive, with their keys, whatever their ids are', { skip }, async (t) => {
  const { storage, url } = await openOnServer(t, { migrations: withoutPartitions });
  const now = Date.now();
  const ids = { old: newId(now - 40 * weekMs), present: newId(now), ahead: newId(now + 9 * weekMs), other: 'zebra' };
  for (const id of Object.values(ids)) await insertInput(storage, id, `["${id}"]`);
  const before = await storage.db.selectFrom('run_inputs').selectAll().orderBy('run_id').execute();
  assert.deepEqual(await migrate(storage, withPartitions, Date.now), ['0032-partitions']);
  assert.deepEqual(await storage.db.selectFrom('run_inputs').selectAll().orderBy('run_id').execute(), before);
  assert.deepEqual(await placesOf(url), {
    [ids.old]: 'run_inputs_earlier',
    [ids.present]: 'run_inputs_earlier',
    [ids.ahead]: 'run_inputs_default',
    [ids.other]: 'run_inputs_default',
  });
  for (const id of Object.values(ids)) await assert.rejects(insertInput(storage, id), { code: '23505' }, id);
});

test('a process of the version before writes and reads on the migrated store', { skip }, async (t) => {
  const { storage, again } = await openOnServer(t, { migrations: withoutPartitions });
  const id = newId();
  await insertInput(storage, id);
  const migrated = await again({ migrations: withPartitions });
  const later = newId();
  await insertInput(storage, later);
  const read = await migrated.storage.db.selectFrom('run_inputs').select('run_id').orderBy('run_id').execute();
  assert.deepEqual(
    read.map(({ run_id }) => run_id),
    [id, later],
  );
});

test('a partition that is missing is made anew, by however many at once, and takes the rows that were stored meanwhile', {
  skip,
}, async (t) => {
  const { storage, again, url } = await openOnServer(t);
  const others = await Promise.all([again(), again(), again()]);
  for (const table of tables) {
    const [entry] = partitionedTables.filter((candidate) => candidate.table === table);
    assert.ok(entry !== undefined);
    await execute(url, `drop table service.${partitionAt(entry, Date.now() + entry.widthMs).name}`);
  }
  const [ahead, far] = [newId(Date.now() + weekMs), newId(Date.now() + 5 * weekMs)];
  await insertInput(storage, ahead);
  await insertInput(storage, far);
  assert.equal((await placesOf(url))[ahead], 'run_inputs_default');
  const all = [storage, ...others.map((other) => other.storage)].map(partitionsOf);
  await Promise.all(all.map((partitions) => partitions.prepare(Date.now())));
  for (const table of tables) assert.equal((await namesOf(url, table)).length, 3, table);
  assert.deepEqual(await placesOf(url), { [ahead]: nextWeek.name, [far]: 'run_inputs_default' });
  for (const partitions of all) assert.deepEqual(partitions.missing(), []);
});

test('a partition that cannot be made is told once, its rows are stored and found, and it is made when it can be', {
  skip,
}, async (t) => {
  const { lines, log } = toldLog();
  const { storage, again, url } = await openOnServer(t);
  const watched = await again({ log });
  const partitions = partitionsOf(watched.storage);
  // Its place is taken by something else, and so that of the present is missing.
  await execute(url, `drop table service.run_inputs_earlier; create table service.${thisWeek.name} ()`);
  await partitions.prepare(Date.now());
  await partitions.prepare(Date.now());
  assert.deepEqual(partitions.missing(), [thisWeek.name]);
  assert.deepEqual(
    lines.map(({ level, fields }) => [level, fields['partitions'] ?? fields['partition']]),
    [['error', [thisWeek.name]]],
  );
  const id = newId();
  await insertInput(storage, id, '["meanwhile"]');
  assert.equal((await placesOf(url))[id], 'run_inputs_default');
  const [row] = await storage.db.selectFrom('run_inputs').selectAll().where('run_id', '=', id).execute();
  assert.equal(row?.messages, '["meanwhile"]');
  await execute(url, `drop table service.${thisWeek.name}`);
  await partitions.prepare(Date.now());
  assert.deepEqual(partitions.missing(), []);
  assert.equal((await placesOf(url))[id], thisWeek.name);
  assert.match(lines.at(-1)?.message ?? '', /there again/);
});

test('a partition is made while others write, and does not wait long for who reads all of the table', {
  skip,
}, async (t) => {
  const { lines, log } = toldLog();
  const { again, storage, url } = await openOnServer(t);
  const watched = await again({ log });
  await execute(url, `drop table service.${nextWeek.name}`);
  await withPostgres(url, async (client) => {
    await client.query('begin');
    await client.query('select count(*) from service.run_inputs');
    await partitionsOf(watched.storage).prepare(Date.now());
    assert.match(lines[0]?.message ?? '', /tried again/);
    await insertInput(storage, newId());
    await client.query('commit');
  });
  await partitionsOf(watched.storage).prepare(Date.now());
  assert.ok((await namesOf(url, 'run_inputs')).includes(nextWeek.name));
  await withPostgres(url, async (client) => {
    await execute(url, `drop table service.${nextWeek.name}`);
    await client.query('begin');
    await client.query(`insert into service.run_inputs (run_id, messages) values ('${newId()}', '[]')`);
    await partitionsOf(watched.storage).prepare(Date.now());
    await client.query('commit');
  });
  assert.ok((await namesOf(url, 'run_inputs')).includes(nextWeek.name));
});

test('many rows in the default partition stay there', { skip }, async (t) => {
  const { lines, log } = toldLog();
  const { again, url } = await openOnServer(t);
  const watched = await again({ log });
  await execute(url, `drop table service.${nextWeek.name}`);
  await execute(
    url,
    `insert into service.run_inputs (run_id, messages)
     select '${nextWeek.from}-7000-8000-' || lpad(n::text, 12, '0'), '[]' from generate_series(1, 1001) n`,
  );
  await partitionsOf(watched.storage).prepare(Date.now());
  assert.match(String(lines[0]?.fields['error']), /More than 1000 rows/);
  assert.equal(Object.values(await placesOf(url)).filter((place) => place === 'run_inputs_default').length, 1001);
});

test('partitions are emptied together with what is written beside them, or not at all', { skip }, async (t) => {
  const { storage } = await openOnServer(t);
  const partitions = partitionsOf(storage);
  await insertInput(storage, newId());
  const later = Date.now() + 3 * weekMs;
  const past = (await partitions.past(later)).filter(({ table }) => table === 'run_inputs');
  assert.deepEqual(
    past.map(({ name, from }) => [name, from]),
    [
      ['run_inputs_earlier', null],
      [nextWeek.name, nextWeek.from],
    ],
  );
  const rows = async () => (await storage.db.selectFrom('run_inputs').selectAll().execute()).length;
  const marks = () => storage.db.selectFrom('retention_marks').select('tenant_id').execute();
  const also = storage.db
    .insertInto('retention_marks')
    .values({ tenant_id: 't', target: 'x', swept_until: 1 })
    .returning('tenant_id')
    .compile();
  const stays = storage.db.selectFrom('run_inputs').select('run_id').where('messages', '=', '[]').compile();
  assert.deepEqual(await partitions.empty(past, [stays], [also]), { isEmptied: false, why: 'stays' });
  assert.deepEqual([await rows(), await marks()], [1, []]);
  assert.deepEqual(await partitions.dropEmpty(later).then((names) => names.includes('run_inputs_earlier')), false);
  const goes = storage.db.selectFrom('run_inputs').select('run_id').where('messages', '=', 'else').compile();
  assert.deepEqual(await partitions.empty(past.slice(0, 1), [goes], [also]), {
    isEmptied: true,
    rows: [[{ tenant_id: 't' }]],
  });
  assert.deepEqual([await rows(), await marks()], [0, [{ tenant_id: 't' }]]);
  assert.deepEqual(await partitions.dropEmpty(later).then((names) => names.includes('run_inputs_earlier')), true);
  assert.deepEqual(await partitions.past(Date.now()), [], 'nothing of the present goes');
});
