import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { classifyPostgres, isConflict } from '../../../src/db/postgres/failure.ts';
import { sendTogether } from '../../../src/db/postgres/pipeline.ts';
import { recogniseSession, SessionStatements } from '../../../src/db/postgres/session-statements.ts';
import { createDatabase } from '../../support/postgres-server.ts';
import { skip } from './opened.ts';

const opened = async (url: string): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: url, pipeline: true } as pg.ClientConfig);
  // The server goes before the client does.
  client.on('error', () => undefined);
  await client.connect();
  return client;
};

const database = async (t: TestContext): Promise<string> => {
  const { url, drop } = await createDatabase();
  t.after(drop);
  return url;
};

const write = (value: number | string) => ({
  sql: 'insert into public.kept (value) values ($1)',
  parameters: [value],
  returns: false,
});

/** Texts of the statements that the session keeps. */
const keptBy = async (client: pg.Client): Promise<string[]> =>
  (await client.query<{ statement: string }>('select statement from pg_prepared_statements order by 1')).rows.map(
    ({ statement }) => statement,
  );

const namesOf = async (client: pg.Client): Promise<string[]> =>
  (await client.query<{ name: string }>('select name from pg_prepared_statements')).rows.map(({ name }) => name);

const valuesIn = async (client: pg.Client): Promise<number[]> =>
  (await client.query<{ value: number }>('select value from public.kept order by 1')).rows.map(({ value }) => value);

/** A proxy that tells its clients numbers of its own, as poolers do. */
const poolerFor = async (t: TestContext, url: string): Promise<string> => {
  const target = new URL(url);
  const folder = target.searchParams.get('host');
  const port = Number(target.port || 5432);
  const address = folder === null ? { host: target.hostname, port } : { path: `${folder}/.s.PGSQL.${port}` };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(address);
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => socket.destroy()));
    client.pipe(upstream);
    upstream.on('data', (data: Buffer) => {
      // BackendKeyData: its type, a length of 12, and the number.
      const at = data.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
      if (at >= 0) data.writeInt32BE(data.readInt32BE(at + 5) + 1, at + 5);
      client.write(data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  target.search = '';
  target.hostname = '127.0.0.1';
  target.port = String((server.address() as AddressInfo).port);
  return target.href;
};

test('a session of the server itself keeps what is written again, and reads stay as they are', { skip }, async (t) => {
  const client = await opened(await database(t));
  await client.query('create table public.kept (value bigint primary key)');
  await recogniseSession(client);
  for (const value of [1, 2, 3, 4]) {
    const outcome = await sendTogether(client, [write(value), { sql: 'select $1::int as read', parameters: [value] }]);
    assert.ok('answers' in outcome);
    assert.deepEqual(outcome.answers[1]?.rows, [{ read: value }]);
  }
  assert.deepEqual(await valuesIn(client).then((values) => values.map(Number)), [1, 2, 3, 4]);
  assert.deepEqual(await keptBy(client), [write(0).sql]);
});

test('behind a pooler nothing is kept, and equal statements of a message still do what they should', {
  skip,
}, async (t) => {
  const client = await opened(await poolerFor(t, await database(t)));
  await client.query('create table public.kept (value bigint primary key)');
  await recogniseSession(client);
  for (const value of [1, 3, 5]) await sendTogether(client, [write(value), write(value + 1)]);
  const outcome = await sendTogether(client, [write(7), write(8), write(1), write(9)]);
  assert.ok('error' in outcome);
  assert.equal(outcome.at, 2, 'the position is that of the statement that failed');
  assert.deepEqual(await valuesIn(client).then((values) => values.map(Number)), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(await keptBy(client), []);
});

test('a message that fails leaves nobody in doubt of what is kept', { skip }, async (t) => {
  const client = await opened(await database(t));
  await client.query('create table public.kept (value bigint primary key)');
  await recogniseSession(client);
  await sendTogether(client, [write(1)]);
  // Told to be kept behind a statement that fails, and so never read.
  for (const value of [2, 3]) {
    const outcome = await sendTogether(client, [{ sql: 'select 1 / 0', parameters: [], returns: false }, write(value)]);
    assert.ok('error' in outcome && outcome.at === 0);
  }
  for (const value of [2, 3]) assert.ok('answers' in (await sendTogether(client, [write(value)])));
  assert.deepEqual(await valuesIn(client).then((values) => values.map(Number)), [1, 2, 3]);
});

test('what is kept is told anew in a while, and takes the place of what was kept', () => {
  const statements = new SessionStatements();
  const naming = (now: number) => statements.named('update', now);
  assert.deepEqual(naming(0), { name: '', isNew: true, drops: null });
  const first = naming(0);
  const prefix = /^(acp_[0-9a-f]{12}_)1$/.exec(first.name)?.[1] ?? assert.fail(first.name);
  assert.deepEqual([first.isNew, first.drops], [true, null]);
  assert.deepEqual(naming(1999), { name: `${prefix}1`, isNew: false, drops: null });
  assert.deepEqual(naming(2000), { name: `${prefix}2`, isNew: true, drops: `${prefix}1` });
  statements.forget('update');
  assert.deepEqual(naming(2001), { name: `${prefix}3`, isNew: true, drops: null });
});

test('what is kept is told anew after ever longer, and each minute in the end', () => {
  const statements = new SessionStatements();
  const toldAt: number[] = [];
  for (let now = 0; now <= 300_000; now += 1000) if (statements.named('update', now).isNew) toldAt.push(now / 1000);
  // The first time under no name.
  assert.deepEqual(toldAt, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
});

test('a plan of a small table does not outlive its growth by more than a while', { skip }, async (t) => {
  const client = await opened(await database(t));
  await client.query('create table public.kept (value bigint primary key)');
  await recogniseSession(client);
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  for (const value of [1, 2, 3]) await sendTogether(client, [write(value)]);
  const [before] = await namesOf(client);
  now += 60_000;
  await sendTogether(client, [write(4)]);
  const after = await namesOf(client);
  assert.equal(after.length, 1, 'the old one is gone');
  assert.notEqual(after[0], before);
});

test('what is kept follows a change of its table', { skip }, async (t) => {
  const client = await opened(await database(t));
  await client.query('create table public.kept (value bigint primary key)');
  await recogniseSession(client);
  for (const value of [1, 2, 3]) await sendTogether(client, [write(value)]);
  await client.query('alter table public.kept add column more text; create index on public.kept (more)');
  assert.ok('answers' in (await sendTogether(client, [write(4)])));
});

test('what gives rows is kept where that is asked for, and is read anew once its table has other columns', {
  skip,
}, async (t) => {
  const client = await opened(await database(t));
  await client.query('create table public.kept (value bigint primary key)');
  await client.query('insert into public.kept values (1)');
  await recogniseSession(client);
  const read = { sql: 'select * from public.kept where value = $1', parameters: [1], isKept: true };
  for (let turn = 0; turn < 3; turn += 1) await sendTogether(client, [read]);
  assert.deepEqual(await keptBy(client), [read.sql]);
  await client.query("alter table public.kept add column more text default 'new'");
  const outdated = await sendTogether(client, [read]);
  assert.ok('error' in outdated);
  // Who has asked asks again, and no store is taken for one that refuses writes.
  assert.deepEqual([isConflict(outdated.error), classifyPostgres(outdated.error)], [true, 'conflict']);
  for (let turn = 0; turn < 3; turn += 1) {
    const outcome = await sendTogether(client, [read]);
    assert.ok('answers' in outcome);
    assert.deepEqual(Object.keys(outcome.answers[0]?.rows[0] as object), ['value', 'more']);
  }
});

test('a session that is another one than it was fails once, and is written to without names then', {
  skip,
}, async (t) => {
  const client = await opened(await database(t));
  await client.query('create table public.kept (value bigint primary key)');
  await recogniseSession(client);
  for (const value of [1, 2]) await sendTogether(client, [write(value)]);
  await client.query('deallocate all');
  const outcome = await sendTogether(client, [write(3)]);
  assert.ok('error' in outcome);
  assert.ok('answers' in (await sendTogether(client, [write(3)])));
  assert.deepEqual(await valuesIn(client).then((values) => values.map(Number)), [1, 2, 3]);
});
