import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import pg from 'pg';
import { environment } from '../../src/core/environment.ts';

/** A server on a socket of this machine, with nothing in it but what tests put there. */
export interface PostgresServer {
  /** As a superuser, to its database `postgres`. */
  readonly url: string;
  readonly pid: number;
  /** Ends it at once, and removes its data. */
  stop(): Promise<void>;
}

/** The version that the service supports at least. */
const oldest = 14;
const superuser = 'acp';

/** What it writes need not survive: nothing waits for a disk. All else is as a server is delivered. */
const settings = [
  ...['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0'],
  ...['listen_addresses=', 'shared_buffers=64MB', 'max_connections=300', 'autovacuum=off', 'checkpoint_timeout=1h'],
  // A test that expects an error would write it to the terminal.
  ...['log_min_messages=log', 'log_checkpoints=off'],
];

const versionOf = (folder: string): number => {
  const { stdout } = spawnSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' });
  return Number(/\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1] ?? 0);
};

/** Debian puts them where no search path leads. */
const debianFolders = (): string[] => {
  const versions = '/usr/lib/postgresql';
  if (!existsSync(versions)) return [];
  return readdirSync(versions)
    .sort((left, right) => Number(right) - Number(left))
    .map((version) => join(versions, version, 'bin'));
};

const folders = (): string[] => [...(environment()['PATH'] ?? '').split(delimiter), ...debianFolders()];

const binaries = (): string | null => {
  const hold = (folder: string) => ['initdb', 'postgres'].every((name) => existsSync(join(folder, name)));
  return (
    folders()
      .filter(hold)
      .find((folder) => versionOf(folder) >= oldest) ?? null
  );
};

/** The program that copies a running server; null: there is none. */
const copier = (): string | null =>
  folders()
    .map((folder) => join(folder, 'pg_basebackup'))
    .find((path) => existsSync(path)) ?? null;

/** The folder of the programs that dump a database and restore it; null: there is none. */
export const postgresPrograms = (): string | null =>
  folders().find((folder) => ['pg_dump', 'pg_restore'].every((name) => existsSync(join(folder, name)))) ?? null;

/** Why no server can follow another one here; null: one can. */
export const whyNoStandby = (): string | null =>
  whyNoServer() ?? (copier() === null ? 'there is no pg_basebackup' : null);

interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL refuses to run as root: then it runs as the user that its package makes. Null: there is none. */
export const serverAccount = (): Account | Record<string, never> | null => {
  if (process.getuid?.() !== 0) return {};
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
  return uid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
};

/** Why no server can be started here; null: one can. */
export const whyNoServer = (): string | null => {
  if (process.platform === 'win32') return 'a private server of PostgreSQL is not started on Windows';
  if (binaries() === null)
    return `there are no programs of PostgreSQL ${oldest} or newer, neither in PATH nor in /usr/lib/postgresql`;
  if (serverAccount() === null) return 'PostgreSQL does not run as root, and there is no user postgres';
  return null;
};

/** Where the address of a server stands that tests may use: made by `test/run.mjs`, or named by whoever starts it. */
const variable = 'ACP_TEST_POSTGRES';

/** The server of this test run; null: it has none. */
export const findPostgres = (): { readonly url: string } | null => {
  const url = environment()[variable];
  return url === undefined || url === '' ? null : { url };
};

const execute = async (command: string, args: readonly string[], account: object): Promise<void> => {
  const child = spawn(command, args, { ...account, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (part) => {
    said += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${said}`);
};

/** The order of text is that of a language, as on most servers: what needs another one has to say so. */
const makeCluster = async (folder: string, data: string, account: object, more: readonly string[]): Promise<void> => {
  const args = ['-D', data, '-U', superuser, '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C.UTF-8', ...more];
  const icu = ['--locale-provider=icu', '--icu-locale=en-US'];
  try {
    await execute(join(folder, 'initdb'), [...args, ...icu], account);
  } catch {
    // Version 14, or one that was built without ICU.
    rmSync(data, { recursive: true, force: true });
    await execute(join(folder, 'initdb'), args, account);
  }
};

const ready = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (part) => {
      // It is read on, so that the server is never stopped by a full pipe.
      if (said.length < 10_000) said += part;
      if (/ready to accept (read-only )?connections/.test(said)) resolve();
    });
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`postgres ended with ${code}: ${said}`)));
  });

interface Cluster {
  /** As a superuser, to its database `postgres`. */
  readonly url: string;
  /** Starts a server on it, with these settings in place of the ones that tests have otherwise. */
  start(more?: readonly string[]): Promise<ChildProcess>;
  /** Makes a folder the server's own. */
  give(folder: string): void;
  remove(): void;
}

/**
 * Data of a server, in a folder of their own below that for temporary files; `source`: a copy of those of a server that
 * runs, which follows it from then on; `logParent`: the write-ahead log lies below this folder, in files of 1 MiB. Throws
 * where `whyNoServer` has a reason.
 */
export const makePostgresCluster = async (
  parent = tmpdir(),
  source: string | null = null,
  logParent: string | null = null,
): Promise<Cluster> => {
  const reason = whyNoServer();
  const [folder, account] = [binaries(), serverAccount()];
  if (reason !== null || folder === null || account === null) throw new Error(`No PostgreSQL: ${reason}`);
  const home = mkdtempSync(join(parent, 'acp-pg-'));
  const remove = () => rmSync(home, { recursive: true, force: true });
  try {
    // The socket is for whoever runs tests; the data stay the server's.
    const give = (path: string): void => {
      if ('uid' in account) chownSync(path, account.uid, account.gid);
    };
    give(home);
    chmodSync(home, 0o711);
    const data = join(home, 'data');
    const logFolder = logParent === null ? null : mkdtempSync(join(logParent, 'log-'));
    if (logFolder !== null) give(logFolder);
    const ofLog = logFolder === null ? [] : [`--waldir=${logFolder}`, '--wal-segsize=1'];
    if (source === null) await makeCluster(folder, data, account, ofLog);
    else
      await execute(
        copier() ?? 'pg_basebackup',
        ['-d', source, '-D', data, '-R', '-c', 'fast', '-X', 'stream'],
        account,
      );
    return {
      url: `postgres://${superuser}@localhost/postgres?host=${home}`,
      async start(more = []) {
        const args = ['-D', data, '-k', home, ...[...settings, ...more].flatMap((setting) => ['-c', setting])];
        // In a group of its own: what a terminal tells the tests, such as an interrupt, is not for the server.
        const child = spawn(join(folder, 'postgres'), args, {
          ...account,
          detached: true,
          stdio: ['ignore', 'ignore', 'pipe'],
        });
        await ready(child);
        return child;
      },
      give,
      remove,
    };
  } catch (error) {
    remove();
    throw error;
  }
};

/** Starts one. Throws where `whyNoServer` has a reason. */
export const startPostgresServer = async (): Promise<PostgresServer> => {
  const cluster = await makePostgresCluster();
  try {
    const child = await cluster.start();
    const closed = once(child, 'close');
    return {
      url: cluster.url,
      pid: child.pid ?? 0,
      async stop() {
        child.kill('SIGQUIT');
        await closed;
        cluster.remove();
      },
    };
  } catch (error) {
    cluster.remove();
    throw error;
  }
};

// Counters and times in milliseconds are numbers, as on the other stores.
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig;

const clientConfig = (url: string): pg.ClientConfig => {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  return {
    host: searchParams.get('host') ?? hostname,
    port: port === '' ? 5432 : Number(port),
    user: decodeURIComponent(username),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    database: pathname.slice(1),
    types,
  };
};

/** A connection that is open until its owner leaves. */
export const openConnection = async (url: string): Promise<{ leave(): Promise<void> }> => {
  const client = new pg.Client(clientConfig(url));
  client.on('error', () => undefined);
  await client.connect();
  return { leave: () => client.end() };
};

/** A connection that is open while the work is done. */
export const withPostgres = async <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client(clientConfig(url));
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

let administration: pg.Pool | null = null;

/** One statement of the superuser, on a connection that this process keeps and that does not keep the process. */
export const administer = async (sql: string): Promise<readonly Record<string, unknown>[]> => {
  const server = findPostgres();
  if (server === null) throw new Error('This test run has no server of PostgreSQL.');
  // Its server may end before it does.
  administration ??= new pg.Pool({
    ...clientConfig(server.url),
    ...{ max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true },
  }).on('error', () => undefined);
  return (await administration.query<Record<string, unknown>>(sql)).rows;
};

/** The address of another database on the same server. */
export const databaseUrl = (server: string, name: string): string => {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
};

/** Removes a database with whoever is connected to it. */
export const dropDatabase = async (name: string): Promise<void> => {
  await administer(`drop database if exists "${name}" with (force)`);
};

/** One statement of the superuser on a connection of its own. */
export const executeAt = (url: string, sql: string): Promise<unknown> =>
  withPostgres(url, (client) => client.query(sql));

/** A table of the service is not there until the returned function is called. */
export const takeTableAway = async (url: string, table: string): Promise<() => Promise<void>> => {
  await executeAt(url, `alter table service."${table}" rename to "away_${table}"`);
  return async () => void (await executeAt(url, `alter table service."away_${table}" rename to "${table}"`));
};

/** How many connections services have to a server. */
export const servedConnections = (url: string): Promise<number> =>
  withPostgres(url, async (client) => {
    const { rows } = await client.query<{ open: number }>(
      `select count(*)::int as open from pg_stat_activity where application_name like 'acp%'`,
    );
    return rows[0]?.open ?? 0;
  });

const nameOf = (url: string): string => new URL(url).pathname.slice(1);

/** Cuts every connection to the database of this address. */
export const disconnectAll = async (url: string): Promise<void> => {
  await executeAt(
    databaseUrl(url, 'postgres'),
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${nameOf(url)}'`,
  );
};

/** Whoever connects to the database from now on may write, or may not, as after a failover. */
export const setReadonly = async (url: string, isReadonly: boolean): Promise<void> => {
  const setting = isReadonly ? 'set default_transaction_read_only = on' : 'reset default_transaction_read_only';
  await executeAt(databaseUrl(url, 'postgres'), `alter database "${nameOf(url)}" ${setting}`);
};

/** An empty database on the server of this test run. */
export const createDatabase = async (): Promise<{ readonly url: string; drop(): Promise<void> }> => {
  const name = `acp_${randomBytes(8).toString('hex')}`;
  await administer(`create database "${name}"`);
  return { url: databaseUrl(findPostgres()?.url ?? '', name), drop: () => dropDatabase(name) };
};
