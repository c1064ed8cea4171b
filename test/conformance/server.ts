import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { environment } from '../../src/core/environment.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { startRoundRobinProxy } from '../support/round-robin-proxy.ts';
import { createFleetTraffic } from './fleet-traffic.ts';

const root = resolve(import.meta.dirname, '../..');

/** Settings by their full key, as `--set` takes them. */
export type Settings = Readonly<Record<string, string>>;

export interface Target {
  readonly url: string;
  readonly token: string;
  /** False: nobody tries there what belongs to others. */
  readonly hasSecondOwner?: boolean;
  /** Where a proxy stands before several processes: each of them by itself. */
  readonly processes?: readonly Target[];
  /** Where whoever watches asks: a round of their own, so that the requests of a rule meet one process after another. */
  readonly watched?: Target;
}

/** The server that the caller of the suite has chosen; undefined: the suite starts its own. */
export const chosenTarget = (): Target | undefined => {
  const { ACP_CONFORMANCE_URL: url, ACP_CONFORMANCE_TOKEN: token } = environment();
  return url === undefined || url === '' ? undefined : { url: url.replace(/\/+$/, ''), token: token ?? '' };
};

/** What is started as `acp`: the sources, a bundle, or an executable. */
const program = (): readonly string[] => {
  const chosen = environment()['ACP_CONFORMANCE_PROGRAM'];
  if (chosen === undefined || chosen === '') return [process.execPath, join(root, 'src/main.ts')];
  return /\.m?js$/.test(chosen) ? [process.execPath, resolve(root, chosen)] : [resolve(root, chosen)];
};

/** A free port of its own choice, which no other test on this machine can come to have in between. */
const anyPort = 'http://127.0.0.1:0';

/** How many processes serve on one database; null: one, on the store of the target's own settings. */
const processCount = (): number | null => {
  const count = environment()['ACP_CONFORMANCE_PROCESSES'];
  return count === undefined || count === '' ? null : Number(count);
};

/** As long as one process may take, for each that comes up beside it: they share one processor on a busy machine. */
const startMs = (): number => processMs * (processCount() ?? 1);

/** The address that it tells. */
const untilServed = (child: ChildProcess, output: () => string): Promise<string> =>
  eventually(
    'the server tells its address',
    () => {
      if (child.exitCode !== null) throw new Error(`The server ended before it listened:\n${output()}`);
      return /serves (http:\S+)/.exec(output())?.[1];
    },
    startMs(),
  );

const untilReady = async (child: ChildProcess, output: () => string): Promise<string> => {
  try {
    const url = await untilServed(child, output);
    const look = () => fetch(`${url}/health/ready`).then(({ ok }) => ok);
    await eventually(`the server at ${url} is ready`, look, startMs());
    return url;
  } catch (error) {
    throw new Error(`The server did not listen:\n${output()}`, { cause: error });
  }
};

export interface OwnServer extends Target {
  stop(): Promise<void>;
}

/** What a server of several processes tells the files of a run that share it (`fleet-main.ts`). */
export interface SharedFleet {
  readonly target: Target;
  readonly processUrls: readonly string[];
  readonly watchedUrl: string;
}

const serverOf = (own: Target, stop: () => Promise<void>, fleet?: Omit<SharedFleet, 'target'>): OwnServer => {
  if (fleet === undefined) return { ...own, stop };
  const watched: Target = { ...own, url: fleet.watchedUrl };
  const processes = fleet.processUrls.map((url): Target => ({ ...own, url, watched }));
  return { ...own, stop, watched, processes };
};

/** One that all test files of this run share. */
const sharedServer = (): OwnServer | null => {
  const told = environment()['ACP_CONFORMANCE_FLEET'];
  if (told === undefined || told === '') return null;
  const { target, ...fleet }: SharedFleet = JSON.parse(told);
  // One process has no others to be asked of.
  return serverOf(target, async () => undefined, fleet.processUrls.length === 0 ? undefined : fleet);
};

/** True where there is one server for all rules: one that needs another is left out. */
export const isShared = (): boolean => (environment()['ACP_CONFORMANCE_SHARED'] ?? '') !== '';

/** True where a second owner watches: then sessions have owners, and nothing is everybody's. */
export const hasOwners = (): boolean => (environment()['ACP_CONFORMANCE_SECOND_OWNER'] ?? '') !== '';

const ownership = {
  'Service:SessionOwnership:Enabled': 'true',
  'Service:SessionOwnership:RequireAuthenticatedOwner': 'false',
  'Service:SessionOwnership:RefuseUnownedSessions': 'true',
};

/** A rule about ownership has what it names itself. */
const isAboutOwners = (settings: Settings): boolean =>
  Object.keys(settings).some((key) => key.startsWith('Service:SessionOwnership:'));

interface Process {
  readonly url: string;
  stop(): Promise<void>;
}

interface Served extends Process {
  readonly processUrls: readonly string[];
  /** Of the proxy for those who watch. */
  readonly watchedUrl: string;
}

/** `acp serve` on the `service.yaml` of a folder. */
export const startProcess = async (folder: string, token: string, settings: Settings): Promise<Process> => {
  const sets = Object.entries({ ...settings, 'Host:Url': anyPort }).flatMap(([key, value]) => [
    '--set',
    `${key}=${value}`,
  ]);
  const [command = '', ...args] = program();
  const child = spawn(command, [...args, 'serve', '--config', join(folder, 'service.yaml'), ...sets], {
    cwd: folder,
    env: { ...environment(), ACP_CONFORMANCE_TOKEN: token, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (part: Buffer) => {
      output = (output + part.toString()).slice(-20_000);
    });
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
  try {
    return { url: await untilReady(child, () => output), stop };
  } catch (error) {
    child.kill('SIGKILL');
    await stop();
    throw error;
  }
};

/** Processes on a database of their own, which make its schema together, and a proxy that asks one after another. */
const startFleet = async (count: number, folder: string, token: string, settings: Settings): Promise<Served> => {
  const database = await createDatabase();
  const shared = {
    // The rules ask one process after another; by default a run of another one is not to be canceled here.
    'Service:RunCancellation:Forward': 'true',
    ...settings,
    'Service:Persistence:Provider': 'Postgres',
    'Service:Persistence:Postgres:ConnectionString': database.url,
    'Service:Persistence:Postgres:MaxConnections': '6',
  };
  const started = await Promise.allSettled(Array.from({ length: count }, () => startProcess(folder, token, shared)));
  const processes = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const processUrls = processes.map(({ url }) => url);
  const traffic = createFleetTraffic(processUrls);
  const proxy = await startRoundRobinProxy(processUrls, traffic.observe);
  const watched = await startRoundRobinProxy(processUrls);
  const stop = async (): Promise<void> => {
    traffic.report();
    await Promise.all([proxy.close(), watched.close()]);
    await Promise.all(processes.map((process) => process.stop()));
    await database.drop();
  };
  const failure = started.find((one) => one.status === 'rejected');
  if (failure === undefined) return { url: proxy.url, watchedUrl: watched.url, processUrls, stop };
  await stop();
  throw failure.reason;
};

/** A server of the suite's own, in a folder of its own. */
export const startServer = async (settings: Settings): Promise<OwnServer> => {
  const shared = Object.keys(settings).length === 0 ? sharedServer() : null;
  if (shared !== null) return shared;
  const folder = mkdtempSync(join(tmpdir(), 'acp-conformance-'));
  cpSync(join(import.meta.dirname, 'target'), folder, { recursive: true });
  const token = `conformance-${process.pid}-token-of-the-suite`;
  const watched = hasOwners() && !isAboutOwners(settings);
  const all = { ...(watched ? ownership : {}), ...settings };
  // A rule about another store is about one process.
  const count = settings['Service:Persistence:Provider'] === undefined ? processCount() : null;
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  try {
    const served: Process & Partial<Served> = await (count === null
      ? startProcess(folder, token, all)
      : startFleet(count, folder, token, all));
    const stop = async (): Promise<void> => {
      await served.stop();
      removeFolder();
    };
    const { processUrls, watchedUrl } = served;
    const fleet = processUrls === undefined || watchedUrl === undefined ? undefined : { processUrls, watchedUrl };
    return serverOf({ url: served.url, token, hasSecondOwner: watched }, stop, fleet);
  } catch (error) {
    removeFolder();
    throw error;
  }
};
