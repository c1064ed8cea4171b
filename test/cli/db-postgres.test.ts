import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Finding } from '../../src/cli/diagnosis/finding.ts';
import type { ServerCheck, ServerStatus } from '../../src/db/server-maintenance.ts';
import { createDatabase, findPostgres, postgresPrograms, withPostgres } from '../support/postgres-server.ts';
import { detachPartition } from '../support/postgres-store.ts';
import { createFolder, helloAgent } from './support.ts';

const skip = findPostgres() === null ? 'there is no server of PostgreSQL' : false;

test('commands on a store in PostgreSQL work beside the services that share it, and say what is right for it', {
  skip,
}, async (t) => {
  const database = await createDatabase();
  t.after(() => database.drop());
  const folder = createFolder(t);
  folder.write('hello.yaml', helloAgent);
  const there = [
    ...['--set', 'Service:Persistence:Provider=Postgres'],
    ...['--set', `Service:Persistence:Postgres:ConnectionString=${database.url}`],
    ...['--set', 'Service:Persistence:Postgres:MaxConnections=4'],
  ];
  const acp = (...args: string[]) => folder.acp([...args, ...there]);
  const planned = await acp('apply', '-f', 'hello.yaml', '--dry-run');
  assert.deepEqual([planned.code, /^created +Agent +hello/.test(planned.stdout)], [0, true], planned.stderr);
  const none = await acp('db', 'status');
  assert.deepEqual([none.code, /There is no store at/.test(none.stderr)], [12, true], none.stderr);
  const early = JSON.parse((await acp('doctor', '--json')).stdout) as Finding[];
  const before = early.find(({ check: name }) => name === 'store');
  assert.match(
    `${before?.status} ${before?.message}`,
    /^ok postgres:.* schema service \(is made at the first start\)$/,
  );
  const wrongFolder = createFolder(t);
  rmSync(join(wrongFolder.path, 'service.yaml'));
  for (const args of [
    ['runs', 'list'],
    ['apply', '-f', 'hello.yaml', '--dry-run'],
  ])
    assert.equal((await wrongFolder.acp([...args, ...there])).code, 12, 'no schema is made without a setup');
  assert.equal((await acp('db', 'status')).code, 12);
  const { url } = await folder.serve(there);
  assert.equal(
    (await wrongFolder.acp(['runs', 'list', ...there])).code,
    0,
    'a store that is there is one that is meant',
  );
  assert.equal((await acp('db', 'migrate', '--json')).stdout, '{\n  "applied": []\n}\n', 'beside a running service');
  for (const command of [
    ['agents', 'apply', '-f', 'hello.yaml'],
    ['keys', 'create', 'k', '--scope', 'RunsRead'],
    ['stop', '--agent', 'other'],
  ]) {
    const done = await acp(...command);
    assert.equal(done.code, 0, `${command.join(' ')}: ${done.stderr}`);
  }
  assert.equal((await folder.acp(['run', 'hello', 'Hi', '--url', url])).code, 0, 'the service sees the agent');
  // Services on the server are at work on what a command puts in line, whoever they are.
  const queued = await acp('run', 'hello', 'Hi', '--queued', '--follow');
  assert.deepEqual([queued.code, queued.stderr.includes('no service')], [0, false], queued.stderr);
  const status = JSON.parse((await acp('db', 'status', '--json')).stdout) as ServerStatus;
  assert.deepEqual([status.provider, status.schema, status.processes, status.pending], ['Postgres', 'service', 1, []]);
  assert.ok(status.rows['runs'] === 2 && (status.tableBytes['runs'] ?? 0) > 0 && status.totalBytes > 0);
  assert.ok(status.connections.ofService >= 1 && status.connections.used <= status.connections.limit);
  assert.ok(Math.abs(status.clockAheadMs) < 60_000 && !status.isStandby && status.unfinishedMove === null);
  const check = await acp('db', 'check', '--json');
  assert.deepEqual([check.code, (JSON.parse(check.stdout) as ServerCheck).findings], [0, []], check.stderr);
  const backup = await acp('db', 'backup', 'copy.dump');
  assert.equal(backup.code, 9);
  assert.match(
    backup.stderr,
    /pg_dump --format=custom --no-owner --schema='service' --file='copy\.dump' --dbname='postgres:/,
  );
  assert.equal((await acp('db', 'compact')).code, 9);
  const findings = JSON.parse((await acp('doctor', '--json')).stdout) as Finding[];
  const store = findings.filter(({ check: name }) => ['store', 'processes', 'database', 'clock'].includes(name));
  assert.deepEqual(
    store.map(({ check: name }) => name),
    ['store', 'processes', 'database', 'clock'],
    JSON.stringify(findings),
  );
  // Damage that rows show: an entry of the trail that somebody has changed.
  await withPostgres(database.url, (client) => client.query(`update service.audit_entries set actor = 'nobody'`));
  const broken = await acp('db', 'check', '--json');
  assert.equal(broken.code, 1);
  assert.match((JSON.parse(broken.stdout) as ServerCheck).findings.join(), /audit trail of tenant default has a fault/);
});

test('a backup of a store with partitions, made with the command that is named, is sound where it is restored', {
  skip,
}, async (t) => {
  const programs = postgresPrograms();
  if (programs === null) return t.skip('pg_dump is not installed');
  const [from, to] = [await createDatabase(), await createDatabase()];
  for (const { drop } of [from, to]) t.after(drop);
  const folder = createFolder(t);
  folder.write('hello.yaml', helloAgent);
  const at = ({ url }: { readonly url: string }) => [
    ...['--set', 'Service:Persistence:Provider=Postgres'],
    ...['--set', `Service:Persistence:Postgres:ConnectionString=${url}`],
  ];
  const acp = (database: { readonly url: string }, ...args: string[]) => folder.acp([...args, ...at(database)]);
  assert.equal((await acp(from, 'agents', 'apply', '-f', 'hello.yaml')).code, 0);
  assert.equal((await acp(from, 'run', 'hello', 'Hi')).code, 0);
  const file = join(folder.path, 'copy.dump');
  const { stderr } = await acp(from, 'db', 'backup', file);
  const options = [.../(--\S+?)=(?:'([^']*)'|(\S+))|(--no-owner)/g[Symbol.matchAll](stderr)].map(
    ([all, name, quoted, plain]) =>
      name === '--dbname' ? `--dbname=${from.url}` : name === undefined ? all : `${name}=${quoted ?? plain}`,
  );
  const execute = (program: string, args: readonly string[]) => {
    const done = spawnSync(join(programs, program), args, { encoding: 'utf8' });
    assert.equal(done.status, 0, done.stderr);
  };
  execute('pg_dump', options);
  execute('pg_restore', ['--no-owner', `--dbname=${to.url}`, file]);
  const statuses = await Promise.all(
    [from, to].map(
      async (database) => JSON.parse((await acp(database, 'db', 'status', '--json')).stdout) as ServerStatus,
    ),
  );
  const [before, after] = statuses.map(({ partitions, rows, applied, missingPartitions }) => ({
    ...{ partitions, rows, applied, missingPartitions },
  }));
  assert.ok((before?.partitions['run_events'] ?? 0) > 2);
  assert.deepEqual(after, before);
  const check = await acp(to, 'db', 'check', '--json');
  assert.deepEqual([check.code, (JSON.parse(check.stdout) as ServerCheck).findings], [0, []], check.stderr);
});

test('a partition that was detached by hand, one that is missing and rows in a default one are told by check and status', {
  skip,
}, async (t) => {
  const database = await createDatabase();
  t.after(() => database.drop());
  const folder = createFolder(t);
  folder.write('hello.yaml', helloAgent);
  const there = [
    ...['--set', 'Service:Persistence:Provider=Postgres'],
    ...['--set', `Service:Persistence:Postgres:ConnectionString=${database.url}`],
  ];
  const acp = (...args: string[]) => folder.acp([...args, ...there]);
  assert.equal((await acp('agents', 'apply', '-f', 'hello.yaml')).code, 0);
  assert.equal((await acp('run', 'hello', 'Hi')).code, 0);
  await detachPartition(database.url, 'run_inputs', 'run_inputs_earlier');
  const check = await acp('db', 'check');
  assert.equal(check.code, 1);
  assert.match(check.stdout, /run_inputs_earlier is no partition any more/);
  assert.match(check.stderr, /The partition run_inputs_\d{8} of the present is not there/);
  assert.match(check.stderr, /run_inputs_default has 1 rows/);
  const status = JSON.parse((await acp('db', 'status', '--json')).stdout) as ServerStatus;
  assert.deepEqual(
    [status.missingPartitions.length, status.defaultPartitionRows, status.detachedPartitions],
    [1, { run_inputs_default: 1 }, ['run_inputs_earlier']],
  );
});
