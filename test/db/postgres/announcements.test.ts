import assert from 'node:assert/strict';
import { connect as connectSocket, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { ClientConfig } from 'pg';
import { silentLogger } from '../../../src/core/logger.ts';
import type { Announcements, Topic } from '../../../src/db/announcements.ts';
import { announcementTexts, readAnnouncement } from '../../../src/db/postgres/announcement-text.ts';
import { openAnnouncements } from '../../../src/db/postgres/announcements.ts';
import { connectListening } from '../../../src/db/postgres/listening.ts';
import { eventually } from '../../support/eventually.ts';
import { createDatabase, findPostgres, withPostgres } from '../../support/postgres-server.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';
const channel = 'service';

const database = async (t: TestContext): Promise<string> => {
  const { url, drop } = await createDatabase();
  t.after(drop);
  return url;
};

const configOf = (url: string): ClientConfig & { readonly host: string } => {
  const { username, pathname, searchParams, hostname, port } = new URL(url);
  return {
    user: username,
    database: pathname.slice(1),
    host: searchParams.get('host') ?? hostname,
    port: port === '' ? 5432 : Number(port),
  };
};

/** A process, and all that it has heard; a word for each time that it may have missed something. */
const openProcess = async (t: TestContext, config: ClientConfig, topics: readonly Topic[] = ['state', 'jobs']) => {
  const heard: string[] = [];
  const told: string[] = [];
  const announcements = openAnnouncements({
    connect: (events) => connectListening(config, events),
    channel,
    log: { ...silentLogger, warn: (_fields, message) => void told.push(message) },
    heartbeatMs: 200,
  });
  t.after(() => announcements.close());
  for (const topic of topics)
    announcements.listen(topic, {
      heard: (key) => void heard.push(`${topic} ${key}`),
      missed: () => void heard.push(`${topic} missed`),
    });
  await eventually('it listens', () => !announcements.deaf());
  heard.length = 0;
  return { announcements, heard, told };
};

const announceAll = (from: Announcements, topic: Topic, keys: readonly string[]): void => {
  for (const key of keys) from.announce(topic, key);
};

test('a notification is shorter than the server takes, and together they hold every key once', () => {
  const keys = Array.from({ length: 3000 }, (_, index) => `run-${index}-${'x'.repeat(index % 400)}`);
  const texts = announcementTexts(
    'me',
    new Map([
      ['run-events' as const, new Set(keys)],
      ['jobs' as const, new Set(['a', 'b'])],
    ]),
  );
  for (const text of texts) assert.ok(Buffer.byteLength(text) < 8000);
  const read = texts.flatMap((text) => readAnnouncement(text)?.keys ?? []);
  assert.deepEqual(
    read.filter(([topic]) => topic === 'run-events').flatMap(([, names]) => names),
    keys,
  );
  assert.deepEqual(
    read.filter(([topic]) => topic === 'jobs').flatMap(([, names]) => names),
    ['a', 'b'],
  );
  const whole = texts.reduce((sum, text) => sum + text.length, 0);
  assert.ok(texts.length <= Math.ceil(whole / 7400), 'no more of them than they need');
  assert.deepEqual(announcementTexts('me', new Map()), []);
});

test('other processes hear what one announces, by its topic, and it does not hear itself', { skip }, async (t) => {
  const config = configOf(await database(t));
  const [here, there] = [await openProcess(t, config), await openProcess(t, config)];
  here.announcements.announce('state', 'apiKeys/1');
  here.announcements.announce('jobs', 'j');
  here.announcements.announce('run-events', 'nobody-listens');
  await eventually('both are heard', () => there.heard.length >= 2);
  there.announcements.announce('state', 'answer');
  await eventually('the answer is heard', () => here.heard.length >= 1);
  assert.deepEqual(there.heard, ['state apiKeys/1', 'jobs j']);
  assert.deepEqual(here.heard, ['state answer']);
});

test('keys of one moment go together, equal ones once', { skip }, async (t) => {
  const url = await database(t);
  const [here, there] = [await openProcess(t, configOf(url)), await openProcess(t, configOf(url))];
  const keys = Array.from({ length: 2000 }, (_, index) => `0199-a-run-with-a-long-name-${index}`);
  await withPostgres(url, async (client) => {
    let notifications = 0;
    client.on('notification', ({ payload = '' }) => {
      if (payload.includes('a-run')) notifications += 1;
    });
    await client.query(`listen ${channel}`);
    for (let times = 0; times < 3; times += 1) announceAll(here.announcements, 'jobs', keys);
    await eventually('all are heard', () => there.heard.length >= keys.length);
    await client.query('select 1');
    assert.ok(notifications <= 12, `${notifications} notifications`);
  });
  assert.deepEqual(there.heard.toSorted(), keys.map((key) => `jobs ${key}`).toSorted());
});

const terminateListeners = (url: string): Promise<void> =>
  withPostgres(url, async (client) => {
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'acp announcements'`,
    );
  });

test('who lost their connection is told that they may have missed something, and hears again', { skip }, async (t) => {
  const url = await database(t);
  const [here, there] = [await openProcess(t, configOf(url)), await openProcess(t, configOf(url))];
  await terminateListeners(url);
  await eventually('the loss is seen', () => here.announcements.deaf() && there.announcements.deaf());
  announceAll(here.announcements, 'state', ['while', 'away']);
  await eventually('they are heard again', () => !here.announcements.deaf() && !there.announcements.deaf());
  assert.ok(there.heard.includes('state missed') && there.heard.includes('jobs missed'));
  announceAll(here.announcements, 'state', ['later']);
  await eventually('what comes later is heard', () => there.heard.includes('state later'));
  assert.match(there.told[0] ?? '', /^Other processes of the store are not heard/);
  assert.match(there.told[1] ?? '', /heard again$/);
});

test('more than can be remembered while nobody can be told becomes one word for all', { skip }, async (t) => {
  const url = await database(t);
  const there = await openProcess(t, configOf(url));
  const here = await openProcess(t, configOf(url));
  await withPostgres(url, (client) =>
    client.query(
      `select pg_terminate_backend(pid) from (select pid from pg_stat_activity
       where datname = current_database() and application_name = 'acp announcements' order by backend_start desc limit 1) last`,
    ),
  );
  await eventually('the loss is seen', () => here.announcements.deaf());
  announceAll(
    here.announcements,
    'jobs',
    Array.from({ length: 10_001 }, (_, index) => `j${index}`),
  );
  await eventually('all is missed', () => there.heard.includes('jobs missed'));
  assert.equal(there.announcements.deaf(), false, 'its own connection was there all the time');
});

/** Passes bytes on between the process and the server until it is told to keep them. */
const silentProxy = async (t: TestContext, { host, port }: ClientConfig) => {
  const state = { silent: false };
  const server = createServer((near) => {
    const far = connectSocket(`${host}/.s.PGSQL.${port ?? 5432}`);
    near.on('data', (bytes) => void (state.silent || far.write(bytes)));
    far.on('data', (bytes) => void (state.silent || near.write(bytes)));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    t.after(() => near.destroy());
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => server.close());
  return { state, address: server.address() as { port: number } };
};

test('a connection that is cut without a word is given up, and another one is opened', { skip }, async (t) => {
  const config = configOf(await database(t));
  const { state, address } = await silentProxy(t, config);
  const there = await openProcess(t, {
    ...config,
    host: '127.0.0.1',
    port: address.port,
    connectionTimeoutMillis: 500,
  });
  const here = await openProcess(t, config);
  state.silent = true;
  here.announcements.announce('state', 'unheard');
  await eventually('the silence is seen', () => there.announcements.deaf());
  state.silent = false;
  await eventually('it hears again', () => !there.announcements.deaf());
  assert.ok(there.heard.includes('state missed'));
});

test('what others write to the channel is passed over', { skip }, async (t) => {
  const url = await database(t);
  const here = await openProcess(t, configOf(url));
  const there = await openProcess(t, configOf(url));
  await withPostgres(url, async (client) => {
    for (const text of ['', 'hello', '{"a":1}', 'acp2 me\nstate x', 'acp1'])
      await client.query('select pg_notify($1, $2)', [channel, text]);
  });
  here.announcements.announce('state', 'ours');
  await eventually('ours is heard', () => there.heard.length > 0);
  assert.deepEqual(there.heard, ['state ours']);
});

test('a listener that fails keeps no other from hearing', { skip }, async (t) => {
  const config = configOf(await database(t));
  const [here, there] = [await openProcess(t, config, []), await openProcess(t, config, [])];
  there.announcements.listen('jobs', {
    heard() {
      throw new Error('broken');
    },
    missed: () => undefined,
  });
  const heard: string[] = [];
  there.announcements.listen('jobs', { heard: (key) => void heard.push(key), missed: () => undefined });
  here.announcements.announce('jobs', 'a');
  await eventually('it is heard', () => heard.length > 0);
});

test('what was announced last is told before the process ends', { skip }, async (t) => {
  const config = configOf(await database(t));
  const [here, there] = [await openProcess(t, config), await openProcess(t, config)];
  announceAll(here.announcements, 'jobs', ['a', 'b']);
  await here.announcements.close();
  await eventually('both are heard', () => there.heard.length === 2);
});
