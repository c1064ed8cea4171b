import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually, processMs } from './eventually.ts';

export const executableFile = resolve(
  import.meta.dirname,
  '../../dist',
  process.platform === 'win32' ? 'acp.exe' : 'acp',
);

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningServer {
  readonly url: string;
  readonly pid: number;
  /** Everything that was written so far. */
  output(): string;
  stop(signal?: NodeJS.Signals): Promise<Finished>;
}

export interface CallOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** An empty folder, a new home and no variables: the executable as a stranger runs it. */
export interface Workplace {
  readonly folder: string;
  readonly home: string;
  readonly temporary: string;
  call(args: readonly string[], options?: CallOptions): Promise<Finished>;
  serve(args?: readonly string[], options?: CallOptions): Promise<RunningServer>;
  /** Ends the servers that still run, and removes all files. */
  close(): Promise<void>;
}

const collect = (child: ChildProcess) => {
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (part: string) => {
      text[name] += part;
    });
  const closed = once(child, 'close').then(
    ([code, signal]): Finished => ({ ...text, code: code as number | null, signal: signal as NodeJS.Signals | null }),
  );
  return { text, closed };
};

export const openWorkplace = (): Workplace => {
  assert.ok(existsSync(executableFile), 'dist/acp is missing: npm test builds it, and so does npm run build');
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'acp-e2e-')));
  const [folder, home, temporary] = ['work', 'home', 'tmp'].map((name) => join(root, name)) as [string, string, string];
  // Whatever the umask: what is unpacked goes to a folder that nobody else can write to.
  for (const path of [folder, home, temporary]) mkdirSync(path, { mode: 0o700 });
  const running = new Set<ChildProcess>();

  const start = (args: readonly string[], { env, input }: CallOptions = {}) => {
    const child = spawn(executableFile, args, {
      cwd: folder,
      env: { HOME: home, TMPDIR: temporary, ...env },
      stdio: 'pipe',
    });
    running.add(child);
    child.once('close', () => running.delete(child));
    child.stdin.end(input ?? '');
    return { child, ...collect(child) };
  };

  return {
    folder,
    home,
    temporary,
    call: (args, options) => start(args, options).closed,
    async serve(args = [], options) {
      const { child, text, closed } = start(['serve', '--set', 'Host:Url=http://127.0.0.1:0', ...args], options);
      const output = () => text.stdout + text.stderr;
      let exit: Finished | null = null;
      void closed.then((finished) => {
        exit = finished;
      });
      const address = () => {
        if (exit !== null) throw new Error(`acp serve ended with ${exit.code}: ${output()}`);
        return /serves (http:\S+)/.exec(output())?.[1];
      };
      const url = await eventually('the address of a service', address, processMs);
      assert.ok(child.pid !== undefined);
      const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
        child.kill(signal);
        return closed;
      };
      return { url, pid: child.pid, output, stop };
    },
    async close() {
      await Promise.all(
        [...running].map((child) => {
          const closed = once(child, 'close');
          child.kill('SIGKILL');
          return closed;
        }),
      );
      rmSync(root, { recursive: true, force: true });
    },
  };
};
