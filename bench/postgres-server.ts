import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { cpuMs } from './process-usage.ts';

export interface PostgresServer {
  readonly version: string;
  /** Connection string of a database that is made anew. */
  createDatabase(name: string): Promise<string>;
  /** Processor time of all of its processes so far, in milliseconds. */
  cpuMs(): number;
  /** Transactions of a database so far; those of a session come to be known a second later at most. */
  transactions(database: string): Promise<number>;
  /** One row of a query on a database of the server. */
  row<T>(database: string, sql: string): Promise<T>;
  stop(): Promise<void>;
}

/** Folder of initdb and postgres; null where PostgreSQL is not installed. */
const binaries = (): string | null => {
  const folders = [
    ...(process.env['PATH'] ?? '').split(':'),
    ...globSync('/usr/lib/postgresql/*/bin').sort().reverse(),
  ];
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres'))) ?? null;
};

/** PostgreSQL refuses to run as the superuser; then its own user does. */
const owner = (): { uid: number; gid: number } | null => {
  if (process.getuid?.() !== 0) return null;
  const [uid = 0, gid = 0] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  );
  return { uid, gid };
};

const statisticsMs = 1100;

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
};

/** Processes whose parent this is. */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

/**
 * A server on loopback as it comes, with every commit on the disk before it is acknowledged; null where none is installed.
 * The folder is one that other users may enter.
 */
export const startPostgres = async (folder: string): Promise<PostgresServer | null> => {
  const bin = binaries();
  if (bin === null) return null;
  const user = owner();
  const data = join(folder, 'postgres');
  mkdirSync(data);
  chmodSync(folder, 0o755);
  if (user !== null) chownSync(data, user.uid, user.gid);
  const as = user ?? {};
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'acp', '--auth=trust', '--encoding=UTF8', '--no-sync'], {
    ...as,
    stdio: 'ignore',
    cwd: data,
  });
  const port = await freePort();
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 200,
    track_io_timing: 'on',
  };
  const child = spawn(
    join(bin, 'postgres'),
    ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { ...as, cwd: data, stdio: 'ignore' },
  );
  const { pid = 0 } = child;
  // No server outlives the benchmark, however it ends.
  process.on('exit', () => child.kill('SIGQUIT'));
  const url = (database: string): string => `postgres://acp@127.0.0.1:${port}/${database}`;
  const query = async <T>(database: string, text: string): Promise<T[]> => {
    const client = new Client({ connectionString: url(database) });
    await client.connect();
    try {
      return (await client.query(text)).rows as T[];
    } finally {
      await client.end();
    }
  };
  const first = async <T>(database: string, sql: string): Promise<T> => {
    const [row] = await query<T>(database, sql);
    if (row === undefined) throw new Error(`No row: ${sql}`);
    return row;
  };
  const until = performance.now() + 30_000;
  let version: string | null = null;
  while (version === null) {
    version = await first<{ server_version: string }>('postgres', 'show server_version').then(
      (row) => row.server_version,
      () => null,
    );
    if (performance.now() > until || child.exitCode !== null) throw new Error('PostgreSQL did not start.');
    if (version === null) await delay(50);
  }
  return {
    version,
    async createDatabase(name) {
      await query('postgres', `create database ${name}`);
      return url(name);
    },
    // What ended is counted by the postmaster, also what ends while it is asked for.
    cpuMs: () => [pid, ...childrenOf(pid)].reduce((sum, one) => sum + (cpuMs(one) || 0), 0) + cpuMs(pid, 'waited for'),
    async transactions(database) {
      await delay(statisticsMs);
      const text = `select xact_commit + xact_rollback as count from pg_stat_database where datname = '${database}'`;
      return Number((await first<{ count: string }>('postgres', text)).count);
    },
    row: first,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGINT');
      await ended;
    },
  };
};
