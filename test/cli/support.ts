import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import type { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { eventually, processMs } from '../support/eventually.ts';
import { program, programEnvironment, programFromSources } from '../support/program.ts';
import { type Outcome, runWarm } from '../support/warm-program.ts';

const repository = dirname(dirname(import.meta.dirname));

/** Answers that tests need: a tool call, text that takes a while, silence, and a failing provider. */
const script = `
rules:
  - when: { tool: clock_now }
    reply: { text: "It is {{last}}.", chunkSize: 4, usage: { inputTokens: 30, outputTokens: 8 } }
  - when: { message: time }
    reply: { toolCalls: [{ name: clock_now, arguments: { timeZone: UTC } }], usage: { inputTokens: 20, outputTokens: 5 } }
  - when: { message: slowly }
    reply: { text: "one two three four five six seven eight nine ten eleven twelve", chunkSize: 4, delay: 40ms }
  - when: { message: stall }
    reply: { stall: true }
  - when: { message: break }
    reply: { error: { type: provider_error, httpStatus: 500 } }
  - when: { message: 'weird' }
    reply: { text: "red \\e[31m bell \\a end" }
  - reply: { text: "Hello there.", usage: { inputTokens: 10, outputTokens: 3 } }
`;

const settings = `
Host:
  Url: http://127.0.0.1:0
  LogLevel: error
  Modules: [./modules/clock.mjs]
Service:
  Providers:
    Scripted: { demo: { File: ./scripts/demo.yaml } }
  Drain: { Timeout: 2s }
`;

export const helloAgent = `
name: hello
model: { provider: demo, model: demo-1 }
instructions: Be brief.
toolNames: [clock_now]
`;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export interface Running {
  readonly child: Child;
  readonly done: Promise<Outcome>;
  /** Resolves once stdout holds the text; rejects when the program ends before. */
  until(text: string, stream?: 'stdout' | 'stderr'): Promise<string>;
}

export interface Folder {
  readonly path: string;
  write(file: string, text: string): string;
  /** Runs `acp` in the folder to its end, in a process that stays unless one of its own is asked for. */
  acp(args: readonly string[], options?: RunOptions): Promise<Outcome>;
  start(args: readonly string[], options?: RunOptions): Running;
  /** Starts `acp serve` and stops it after the test. */
  serve(args?: readonly string[]): Promise<{ readonly url: string; readonly running: Running }>;
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the bundle. */
  readonly fromSources?: boolean;
  /** For how a process starts, what it does with its streams, and how it ends. */
  readonly ownProcess?: boolean;
  /** Default: the line that names a store which the command opens itself is left out of the standard error. */
  readonly storeNote?: boolean;
}

const storeNotes =
  /^(?:This command (?:works on|reads) the store .* directly, not through a service\.|There is no store at .* yet: this command compares with an empty one\.)\n/m;

const withoutStoreNote = (outcome: Outcome): Outcome => ({
  ...outcome,
  stderr: outcome.stderr.replace(storeNotes, ''),
});

const environmentIn = (cwd: string, { env = {} }: RunOptions) => ({
  PATH: process.env['PATH'] ?? '',
  HOME: cwd,
  TZ: 'UTC',
  ...programEnvironment,
  ...env,
});

/** A standard input can be given to a process alone, and what answers a shell ends its process. */
const needsOwnProcess = (args: readonly string[], { ownProcess, fromSources, input }: RunOptions): boolean =>
  ownProcess === true || fromSources === true || input !== undefined || args[0] === '__complete';

const startProgram = (cwd: string, args: readonly string[], options: RunOptions): Running => {
  const { input, fromSources = false } = options;
  const [command, file] = fromSources ? programFromSources : program;
  const child = spawn(command, [file, ...args], {
    cwd,
    env: environmentIn(cwd, options),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8');
    child[name].on('data', (text: string) => {
      output[name] += text;
    });
  }
  // A program that ends without reading its input closes the pipe.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input ?? '');
  let outcome: Outcome | null = null;
  const done = once(child, 'close').then(([code]: unknown[]) => {
    outcome = { code: code as number | null, ...output };
    return outcome;
  });
  return {
    child,
    done,
    until: (text, stream = 'stdout') =>
      eventually(
        `"${text}" on ${stream}`,
        () => {
          if (output[stream].includes(text)) return output[stream];
          if (outcome !== null) throw new Error(`acp ended with ${outcome.code} before "${text}": ${outcome.stderr}`);
          return null;
        },
        processMs,
      ),
  };
};

/** Where a service that was started with `--json` listens: the first line of its log that names an address. */
export const listeningUrl = async (running: Pick<Running, 'until'>): Promise<string> => {
  const text = await running.until('"The service listens"}\n');
  const line = text.split('\n').find((each) => each.includes('"The service listens"')) ?? '';
  return (JSON.parse(line) as { url: string }).url;
};

/** A folder with settings, a script and a tool, removed after the test. Every program started in it is stopped. */
export const createFolder = (t: Pick<TestContext, 'after'>): Folder => {
  const path = mkdtempSync(join(tmpdir(), 'acp-cli-'));
  const children = new Set<Child>();
  const write = (file: string, text: string): string => {
    const target = join(path, file);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
    return target;
  };
  write('service.yaml', settings);
  write('scripts/demo.yaml', script);
  write('hello.yaml', helloAgent);
  mkdirSync(join(path, 'modules'));
  cpSync(join(repository, 'assets', 'samples', 'clock.mjs'), join(path, 'modules', 'clock.mjs'));

  const start = (args: readonly string[], options: RunOptions = {}): Running => {
    const running = startProgram(path, args, options);
    children.add(running.child);
    running.child.once('close', () => children.delete(running.child));
    return running;
  };
  t.after(async () => {
    for (const child of children) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    rmSync(path, { recursive: true, force: true });
  });
  return {
    path,
    write,
    start,
    async acp(args, options = {}) {
      const outcome = needsOwnProcess(args, options)
        ? await start(args, options).done
        : await runWarm({ cwd: path, args, env: environmentIn(path, options) });
      return options.storeNote === true ? outcome : withoutStoreNote(outcome);
    },
    async serve(args = []) {
      const running = start(['serve', '--json', ...args]);
      return { url: await listeningUrl(running), running };
    },
  };
};
