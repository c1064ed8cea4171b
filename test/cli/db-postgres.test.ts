import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding } from '../../src/cli/diagnosis/finding.ts';
import type { ServerCheck, ServerStatus } from '../../src/db/server-maintenance.ts';
import { createDatabase, findPostgres, withPostgres } from '../support/postgres-server.ts';
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
  const none = await acp('db', 'status');
  assert.deepEqual([none.code, /There is no store at/.test(none.stderr)], [8, true], none.stderr);
  const { url } = await folder.serve(there);
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
  const status = JSON.parse((await acp('db', 'status', '--json')).stdout) as ServerStatus;
  assert.deepEqual([status.provider, status.schema, status.processes, status.pending], ['Postgres', 'service', 1, []]);
  assert.ok(status.rows['runs'] === 1 && (status.tableBytes['runs'] ?? 0) > 0 && status.totalBytes > 0);
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
