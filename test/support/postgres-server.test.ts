import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { environment } from '../../src/core/environment.ts';
import { eventually, processMs } from './eventually.ts';
import { createDatabase, findPostgres, whyNoServer, withPostgres } from './postgres-server.ts';

const databases = (url: string): Promise<readonly unknown[]> =>
  withPostgres(url, async (client) => {
    const { rows } = await client.query<{ name: string }>('select current_database() as name');
    return rows.map(({ name }) => name);
  });

test('what runs on every store runs on PostgreSQL, too', async (t) => {
  const server = findPostgres();
  if (server === null) {
    t.skip(whyNoServer() ?? 'npm test starts the server, and it was not npm test that started this');
    return;
  }
  const [one, other] = [await createDatabase(), await createDatabase()];
  assert.notDeepEqual(await databases(one.url), await databases(other.url));
  await one.drop();
  await assert.rejects(databases(one.url), { code: '3D000' });
  await other.drop();
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // There is no such process.
    return false;
  }
};

test('a server ends, and its data go, when whoever started it is killed', async (t) => {
  const reason = whyNoServer();
  if (reason !== null) return t.skip(reason);
  const program = join(import.meta.dirname, 'postgres-server-main.ts');
  // As the runner of tests does it: in a process that somebody kills without giving it a chance.
  const code = `const { spawn } = require('node:child_process');
    spawn(process.execPath, [${JSON.stringify(program)}], { stdio: ['pipe', 'inherit', 'inherit'] });`;
  const { NODE_TEST_CONTEXT: _context, ...env } = environment();
  const runner = spawn(process.execPath, ['--eval', code], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(runner.stdout, 'data');
  const url = String(line).trim();
  const pid = await withPostgres(url, async (client) => {
    const { rows } = await client.query<{ pid: string }>(
      "select split_part(pg_read_file('postmaster.pid'), e'\\n', 1) as pid",
    );
    return Number(rows[0]?.pid);
  });
  assert.ok(isAlive(pid));
  runner.kill('SIGKILL');
  await eventually('the end of the server', () => !isAlive(pid), processMs);
  const home = new URL(url).searchParams.get('host') ?? '';
  await eventually('the end of its data', () => !existsSync(home), processMs);
});
