import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { extname, join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');

/** A process of the benchmark, ready once its first line names its address. */
export interface Server {
  readonly name: string;
  readonly pid: number;
  readonly url: URL;
  /** From the start of the process to its first line. */
  readonly startMs: number;
  stop(): Promise<void>;
}

/** How `acp` is started. */
export interface Program {
  readonly kind: 'executable' | 'bundle' | 'sources';
  readonly path: string;
  readonly command: readonly string[];
}

const startTimeoutMs = 30_000;
const stopTimeoutMs = 15_000;
const running = new Set<ChildProcess>();

/** No process outlives the benchmark, however it ends. */
export const stopServersAtExit = (): void => {
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL');
  });
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)
    process.once(signal, () => process.exit(code));
};

// The caller's own settings of acp must not reach the one that is measured.
const environment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(ACP_|NODE_OPTIONS$|NODE_V8_COVERAGE$)/.test(name) && !name.includes('__'),
    ),
  );

const tail = (text: string): string => text.slice(-4000);

const firstUrl = (child: ChildProcess, name: string, errors: () => string): Promise<URL> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${name} did not start in time\n${tail(errors())}`)),
      startTimeoutMs,
    );
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      act();
    };
    child.once('error', (error) => settle(() => reject(error)));
    child.once('exit', (code, signal) =>
      settle(() => reject(new Error(`${name} ended with ${signal ?? code}\n${tail(errors())}`))),
    );
    if (child.stdout === null) throw new Error(`${name} has no output`);
    // Lines of a log may come before the one that names the address.
    createInterface(child.stdout).on('line', (line) => {
      const url = /http:\/\/[\d.]+:\d+/.exec(line)?.[0];
      if (url !== undefined) settle(() => resolve(new URL(url)));
    });
  });

/** Starts a process and waits for its address. Rejects with what it wrote to stderr when it ends before that. */
export const startServer = async (name: string, command: readonly string[], cwd: string): Promise<Server> => {
  const [file = '', ...args] = command;
  const startedAt = performance.now();
  const child = spawn(file, args, { cwd, env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let errors = '';
  child.stderr.on('data', (data: Buffer) => {
    errors = tail(errors + data.toString());
  });
  const ended = once(child, 'exit').finally(() => running.delete(child));
  const url = await firstUrl(child, name, () => errors);
  const startMs = performance.now() - startedAt;
  return {
    name,
    pid: child.pid ?? 0,
    url,
    startMs,
    async stop() {
      const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
      child.kill('SIGTERM');
      await ended;
      clearTimeout(timer);
      if (child.signalCode === 'SIGKILL') throw new Error(`${name} did not stop in time\n${errors}`);
    },
  };
};

const ownScript = (name: string): string => join(import.meta.dirname, name);

/** `thinksMs`: before each answer; `paceMs`: between two packets of it. */
export const startSimulator = (cwd: string, { thinksMs = 0, paceMs = 0 } = {}): Promise<Server> =>
  startServer('simulator', [process.execPath, ownScript('simulator.ts'), String(thinksMs), String(paceMs)], cwd);

export const startYardstick = (simulator: Server, file: string, cwd: string): Promise<Server> =>
  startServer('yardstick', [process.execPath, ownScript('yardstick.ts'), simulator.url.origin, file], cwd);

/** The program at a path: `.mjs` and `.ts` run on this Node, everything else by itself. */
export const programAt = (path: string, nodeFlags: readonly string[] = []): Program => {
  const kind = { '.mjs': 'bundle', '.ts': 'sources' }[extname(path)] as 'bundle' | 'sources' | undefined;
  return kind === undefined
    ? { kind: 'executable', path, command: [path] }
    : { kind, path, command: [process.execPath, ...nodeFlags, path] };
};

/** The executable when it is built, else the bundle. */
export const builtProgram = (): Program => {
  const found = ['acp', 'acp.exe', 'acp.mjs'].map((name) => join(root, 'dist', name)).find(existsSync);
  if (found === undefined) throw new Error('There is nothing to measure in dist; run `npm run build` first.');
  return programAt(found);
};

export const sourceProgram = (nodeFlags: readonly string[]): Program =>
  programAt(join(root, 'src', 'main.ts'), nodeFlags);

export const startAcp = (program: Program, cwd: string): Promise<Server> =>
  startServer('acp', [...program.command, 'serve', '--json', '--config', join(cwd, 'service.yaml')], cwd);

/** Milliseconds that a command takes from its start to its end. */
export const timeCommand = async (program: Program, args: readonly string[], cwd: string): Promise<number> => {
  const [file = '', ...rest] = [...program.command, ...args];
  const startedAt = performance.now();
  const child = spawn(file, rest, { cwd, env: environment(), stdio: 'ignore' });
  running.add(child);
  const [code] = await once(child, 'exit').finally(() => running.delete(child));
  if (code !== 0) throw new Error(`${[file, ...rest].join(' ')} ended with ${code}`);
  return performance.now() - startedAt;
};
