import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverAccount, whyNoServer } from './postgres-server.ts';

/** PgBouncer in front of a server: it lends connections by transaction. */
export interface Pooler {
  /** The database of the address that it was made for, through the pooler. */
  readonly url: string;
  /** Ends it with all of its connections, and starts it again. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface PoolerSetup {
  /** Of a database on a server with a socket on this machine. */
  readonly database: string;
  /** Connections to the server, and how many clients may share them. */
  readonly serverConnections: number;
  readonly clientConnections: number;
}

/** Why there is no pooler here; null: there is one. */
export const whyNoPooler = (): string | null =>
  whyNoServer() ??
  (spawnSync('pgbouncer', ['--version']).status === 0 ? null : 'there is no program pgbouncer in PATH');

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
};

const ready = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (part) => {
      if (said.length < 10_000) said += part;
      if (said.includes('process up')) resolve();
    });
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`pgbouncer ended with ${code}: ${said}`)));
  });

/** Starts one. Throws where `whyNoPooler` has a reason. */
export const startPooler = async ({ database, serverConnections, clientConnections }: PoolerSetup): Promise<Pooler> => {
  const { username, pathname, searchParams } = new URL(database);
  const port = await freePort();
  const account = serverAccount() ?? {};
  const folder = mkdtempSync(join(tmpdir(), 'acp-pooler-'));
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(join(folder, 'users.txt'), `"${username}" ""\n`);
  const settings = [
    ...['[databases]', `* = host=${searchParams.get('host')}`],
    ...['[pgbouncer]', 'listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir ='],
    ...['auth_type = trust', `auth_file = ${folder}/users.txt`, 'pool_mode = transaction'],
    ...[`default_pool_size = ${serverConnections}`, `max_client_conn = ${clientConnections}`, 'reserve_pool_size = 0'],
  ];
  writeFileSync(file, `${settings.join('\n')}\n`);
  chmodSync(folder, 0o755);
  if ('uid' in account) chownSync(folder, account.uid, account.gid);
  const start = async (): Promise<ChildProcess> => {
    // In a group of its own, as the server: it refuses to run as root.
    const started = spawn('pgbouncer', [file], { ...account, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    await ready(started);
    return started;
  };
  let child = await start();
  const end = async (): Promise<void> => {
    const closed = once(child, 'close');
    child.kill('SIGTERM');
    await closed;
  };
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    async restart() {
      await end();
      child = await start();
    },
    async close() {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
