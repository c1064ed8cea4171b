import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { databaseUrl, disconnectAll, executeAt, makePostgresCluster, setReadonly } from './postgres-server.ts';

/** A server of PostgreSQL to which things happen; its commits are on the disk before they are acknowledged. */
export interface FaultyPostgres {
  /** Connection string of the database that the services use. */
  readonly url: string;
  /** Cuts every connection of the services. */
  disconnectAll(): Promise<void>;
  /** Whoever connects from now on may write, or may not, as after a failover. */
  setReadonly(isReadonly: boolean): Promise<void>;
  /** Another database, whose tables lie in this folder; its connection string. */
  databaseOn(folder: string): Promise<string>;
  /** SIGKILL to the server and all of its processes. */
  crash(): Promise<void>;
  /** An orderly end that throws everybody out. */
  shutDown(): Promise<void>;
  /** Resolves when it has ended by itself. */
  gone(): Promise<void>;
  /** After one of these. Recovers what was committed. */
  start(settings?: readonly string[]): Promise<void>;
  /** All of its processes stand still: connections stay open, and nobody answers. */
  suspend(): void;
  wake(): void;
  close(): Promise<void>;
}

const durable = ['fsync=on', 'synchronous_commit=on', 'full_page_writes=on'];

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

const tell = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

/** Where its data lie may be a disk of the test's own. */
export const startFaultyPostgres = async (
  folder?: string,
  {
    source = null,
    settings: own = [],
    logFolder = null,
  }: {
    readonly source?: string | null;
    readonly settings?: readonly string[];
    /** Where its write-ahead log lies; null: with the data. */
    readonly logFolder?: string | null;
  } = {},
): Promise<FaultyPostgres> => {
  const cluster = await makePostgresCluster(folder, source, logFolder);
  let child!: ChildProcess;
  const everybody = (signal: NodeJS.Signals): void => {
    const pid = child.pid ?? 0;
    // The first one keeps the others: they are told after it, so that it starts none anew.
    const children = childrenOf(pid);
    tell(pid, signal);
    for (const one of children) tell(one, signal);
  };
  const ended = async (end: () => void): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    end();
    await closed;
  };
  const start = async (settings: readonly string[] = []): Promise<void> => {
    child = await cluster.start([...durable, ...own, ...settings]);
  };
  await start();
  const url = databaseUrl(cluster.url, 'services');
  if (source === null) await executeAt(cluster.url, 'create database services');
  return {
    url,
    disconnectAll: () => disconnectAll(url),
    setReadonly: (isReadonly) => setReadonly(url, isReadonly),
    async databaseOn(folder) {
      const location = mkdtempSync(join(folder, 'tables-'));
      cluster.give(location);
      await executeAt(cluster.url, `create tablespace small location '${location}'`);
      await executeAt(cluster.url, 'create database elsewhere tablespace small');
      return databaseUrl(cluster.url, 'elsewhere');
    },
    crash: () => ended(() => everybody('SIGKILL')),
    shutDown: () => ended(() => child.kill('SIGINT')),
    gone: () => ended(() => undefined),
    start,
    suspend: () => everybody('SIGSTOP'),
    wake: () => everybody('SIGCONT'),
    async close() {
      await ended(() => {
        everybody('SIGCONT');
        child.kill('SIGQUIT');
      });
      cluster.remove();
    },
  };
};
