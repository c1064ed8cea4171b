import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { stringify } from 'yaml';
import { environment } from '../../src/core/environment.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import { calmZone } from '../support/calm-zone.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { program as bundled, programEnvironment } from '../support/program.ts';
import { defaultStore } from '../support/store.ts';
import { runWarm } from '../support/warm-program.ts';

type Settings = Readonly<Record<string, unknown>>;

const root = resolve(import.meta.dirname, '../..');
const built = environment()['ACP_E2E_BINARY'];

/** What is started as `acp`: the clone's bundle, or with the variable ACP_E2E_BINARY another one or an executable. */
const program: readonly [command: string, ...args: string[]] =
  built === undefined || built === ''
    ? bundled
    : /\.m?js$/.test(built)
      ? [process.execPath, resolve(root, built)]
      : [resolve(root, built)];

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** `acp serve` as a process of its own. */
export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has ended and all of its output is here. */
  readonly ended: Promise<Finished>;
  log(): readonly LogLine[];
  stderr(): string;
  signal(name: NodeJS.Signals): void;
  /** SIGKILL: no handler runs, nothing is flushed. */
  kill(): Promise<Finished>;
  /** SIGTERM. */
  stop(): Promise<Finished>;
}

export interface SiteSetup {
  /** Settings below `Service:`. */
  readonly service?: Settings;
  /** Settings below `Host:`. */
  readonly host?: Settings;
  /** Rules of the scripted provider `demo`. */
  readonly script?: readonly Settings[];
  /** Folder of the store, named `data`; default: below the site's folder. */
  readonly dataFolder?: string;
}

export interface StartOptions {
  readonly args?: readonly string[];
  /** User id of the process; only the superuser may choose. */
  readonly uid?: number;
  /** Command and first arguments of another build; default: the one that is tested. */
  readonly program?: readonly [command: string, ...first: string[]];
}

/** A folder with a configuration and a store, the processes that work on it, and what they leave behind. */
export interface Site {
  readonly folder: string;
  readonly storePath: string;
  /** Starts the service on a free port and waits for its address. */
  serve(options?: StartOptions): Promise<ServiceProcess>;
  /** Any command, to its end; also a `serve` that is expected to fail. */
  acp(args: readonly string[], options?: StartOptions): Promise<Finished>;
  /** The store as one more process has it, while it is served or not: for the faces that features have of it. */
  aside<T>(work: (storage: RootStorage) => Promise<T>): Promise<T>;
  /** `acp db check` has nothing to say. */
  checkStore(): Promise<void>;
  /** Ends the processes that still run, each by its own id, and removes all files. */
  close(): Promise<void>;
}

const lines = (text: string): LogLine[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine);

const finished = (
  child: ChildProcess,
): { readonly text: { stdout: string; stderr: string }; ended: Promise<Finished> } => {
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (part: string) => {
      text[name] += part;
    });
  const ended = once(child, 'close').then(
    ([code, signal]): Finished => ({ ...text, code: code as number | null, signal: signal as NodeJS.Signals | null }),
  );
  return { text, ended };
};

const writeConfig = (folder: string, dataFolder: string, setup: SiteSetup): string => {
  const storePath = join(dataFolder, 'acp.db');
  const { Providers, Quotas, ...service } = (setup.service ?? {}) as Record<'Providers' | 'Quotas', Settings> &
    Settings;
  writeFileSync(join(folder, 'script.yaml'), stringify({ rules: setup.script ?? [{ reply: { text: 'Hello.' } }] }));
  const config = {
    Service: {
      Persistence: { Sqlite: { ConnectionString: storePath } },
      Providers: { Scripted: { demo: { File: './script.yaml' } }, ...Providers },
      Quotas: { TimeZone: calmZone(), ...Quotas },
      ...service,
    },
    Host: { Url: 'http://127.0.0.1:0', ...setup.host },
  };
  writeFileSync(join(folder, 'service.yaml'), stringify(config));
  return storePath;
};

/** Opens a site; the caller closes it when its tests are over. */
export const openSite = (setup: SiteSetup = {}): Site => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'acp-faults-')));
  const dataFolder = setup.dataFolder ?? join(folder, 'data');
  const storePath = writeConfig(folder, dataFolder, setup);
  const store = defaultStore.aside?.(dirname(dataFolder)) ?? assert.fail('another process can open the store');
  const home = join(folder, 'home');
  mkdirSync(home);
  const children = new Set<ChildProcess>();
  const { PATH = '' } = environment();
  const variables = { PATH, HOME: home, NO_COLOR: '1', ...(program === bundled ? programEnvironment : {}) };

  const start = (args: readonly string[], { uid, program: chosen = program }: StartOptions) => {
    const [command, ...first] = chosen;
    const child = spawn(command, [...first, ...args], {
      cwd: folder,
      env: variables,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    children.add(child);
    child.once('close', () => children.delete(child));
    return { child, ...finished(child) };
  };

  const acp: Site['acp'] = async (args, options = {}) => {
    // Who serves, who is somebody else, and what was built elsewhere: a process of its own.
    if (args[0] === 'serve' || options.uid !== undefined || program !== bundled) return start(args, options).ended;
    return { ...(await runWarm({ cwd: folder, args, env: variables })), signal: null };
  };

  return {
    folder,
    storePath,
    acp,
    async serve(options = {}) {
      const { child, text, ended } = start(['serve', '--json', ...(options.args ?? [])], options);
      let exit: Finished | null = null;
      void ended.then((finished) => {
        exit = finished;
      });
      const line = await until('the address of a service', () => {
        if (exit !== null) throw new Error(`acp serve ended with ${exit.code}: ${exit.stderr}`);
        return /^.*"The service listens"\}$/m.exec(text.stdout)?.[0];
      });
      const { url, pid } = JSON.parse(line) as { url: string; pid: number };
      const signal = (name: NodeJS.Signals): void => void child.kill(name);
      const end = (name: NodeJS.Signals): Promise<Finished> => {
        signal(name);
        return ended;
      };
      return {
        url,
        pid,
        ended,
        signal,
        log: () => lines(text.stdout),
        stderr: () => text.stderr,
        kill: () => end('SIGKILL'),
        stop: () => end('SIGTERM'),
      };
    },
    async aside(work) {
      const storage = store.open();
      try {
        return await work(storage);
      } finally {
        await storage.close();
      }
    },
    async checkStore() {
      const { code, stdout, stderr } = await acp(['db', 'check', '--json']);
      assert.equal(code, 0, stdout + stderr);
      assert.deepEqual((JSON.parse(stdout) as { findings: unknown }).findings, []);
    },
    async close() {
      await Promise.all(
        [...children].map((child) => {
          const closed = once(child, 'close');
          child.kill('SIGKILL');
          return closed;
        }),
      );
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** `eventually`, with the time that a process of its own may take. */
export const until: typeof eventually = (what, look) => eventually(what, look, processMs);
