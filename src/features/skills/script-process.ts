import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { killTree } from '../../core/kill-tree.ts';
import type { Logger } from '../../core/logger.ts';
import { scriptFilePath } from '../../core/skill-folder/skill-folder.ts';
import type { AgentSkill } from './host-skills.ts';
import { makeScriptFolder, removeScriptFolder } from './script-folder.ts';
import type { ScriptIsolation } from './script-isolation.ts';
import type { AgentSkillScriptDefinition } from './skills.schema.ts';

/** Output of a process up to a bound over both streams together; what is beyond is counted and dropped. */
class ScriptOutput {
  readonly #chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] };
  #left: number;
  #omitted = 0;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
  }

  add(stream: 'stdout' | 'stderr', chunk: Uint8Array): void {
    const part = chunk.subarray(0, this.#left);
    this.#left -= part.length;
    this.#omitted += chunk.length - part.length;
    if (part.length > 0) this.#chunks[stream].push(part);
  }

  /** What the model gets. Bytes that are no UTF-8 become U+FFFD. */
  text(exitCode: number): string {
    const lines = [
      `exit_code: ${exitCode}`,
      'stdout:',
      ...this.#lines('stdout'),
      'stderr:',
      ...this.#lines('stderr'),
      ...(this.#omitted === 0 ? [] : [`[output truncated: ${this.#omitted} bytes omitted]`]),
    ];
    return lines.join('\n');
  }

  #lines(stream: 'stdout' | 'stderr'): string[] {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(this.#chunks[stream]));
    return text === '' ? [] : [text.replace(/\r?\n$/, '')];
  }
}

export interface ProcessSettings {
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Variables that are passed on, already without the service's own. */
  readonly environment: Readonly<Record<string, string>>;
  readonly isolation: ScriptIsolation;
  readonly log: Pick<Logger, 'warn'>;
}

export interface Interpreter {
  readonly Command: string;
  readonly Arguments: readonly string[];
}

export type ProcessEnd =
  | { readonly kind: 'exited'; readonly exitCode: number; readonly text: string }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'canceled' }
  | { readonly kind: 'notStarted'; readonly reason: string };

export interface ScriptStart {
  readonly skill: AgentSkill;
  readonly script: AgentSkillScriptDefinition;
  readonly interpreter: Interpreter;
  /** One JSON object. */
  readonly input: string;
  readonly signal: AbortSignal;
}

// What killed writers left in a pipe is read at once. Whoever still holds the pipe after that could not be killed.
const pipesGraceMs = 1000;

const exitCodeOf = (exitCode: number | null, signal: NodeJS.Signals | null): number =>
  // As shells report the end by a signal.
  exitCode ?? 128 + (signal === null ? 0 : (constants.signals[signal] ?? 0));

const execute = async (start: ScriptStart, settings: ProcessSettings, folder: string): Promise<ProcessEnd> => {
  const { skill, script, interpreter, input, signal } = start;
  const { isolation } = settings;
  const output = new ScriptOutput(settings.maxOutputBytes);
  const command = [interpreter.Command, ...interpreter.Arguments, join(folder, scriptFilePath(script))] as const;
  const [program, ...args] = isolation === null ? command : [isolation.command, ...isolation.arguments, ...command];
  const child = execa(program, args, {
    cwd: folder,
    env: { ...settings.environment, ACP_SKILL_NAME: skill.name, ACP_SKILL_TEMP: folder },
    extendEnv: false,
    shell: false,
    // Its own group, so that what it starts ends with it.
    detached: true,
    // The fourth is where a namespace is told.
    stdio: ['pipe', 'pipe', 'pipe', ...(isolation === null ? [] : (['pipe'] as const))],
    input,
    buffer: false,
    reject: false,
  });
  const { nodeChildProcess: node, pid } = child;
  if (pid === undefined) {
    const { code } = await child;
    return { kind: 'notStarted', reason: `the interpreter does not start (${code ?? 'unknown'})` };
  }
  for (const stream of ['stdout', 'stderr'] as const)
    node[stream]?.on('data', (chunk: Uint8Array) => output.add(stream, chunk));
  const [told] = node.stdio.slice(3);
  let isIsolated = isolation === null;
  told?.once('data', () => {
    isIsolated = true;
  });
  let exitCode: number | null = null;
  let ended: 'timedOut' | 'canceled' | null = null;
  let killing: Promise<void> = Promise.resolve();
  let grace: NodeJS.Timeout | undefined;
  const ties = isolation === null ? { variable: `ACP_SKILL_TEMP=${folder}`, folder } : null;
  const kill = (): void => {
    killing = killing.then(() => killTree(pid, ties));
  };
  const cut = (): void => {
    for (const stream of node.stdio) stream?.destroy();
  };
  const end = (why: 'timedOut' | 'canceled'): void => {
    // A script that has exited keeps its code; only those who hold its pipes have to go.
    if (exitCode === null) ended ??= why;
    else cut();
    kill();
  };
  const cancel = (): void => end('canceled');
  // Both hold until the pipes are closed: the exit of a script whose children hold them is not its end.
  const timer = setTimeout(() => end('timedOut'), settings.timeoutMs);
  signal.addEventListener('abort', cancel, { once: true });
  node.once('exit', (code, by) => {
    exitCode = exitCodeOf(code, by);
    // What the script left behind would hold its output open, and must not outlive it.
    kill();
    void killing.then(() => {
      grace = setTimeout(cut, pipesGraceMs);
    });
  });
  if (signal.aborted) cancel();
  try {
    await once(node, 'close');
    await killing;
    if (ended !== null) return { kind: ended };
    if (!isIsolated) return { kind: 'notStarted', reason: 'no PID namespace was made for it' };
    const code = exitCode ?? 0;
    return { kind: 'exited', exitCode: code, text: output.text(code) };
  } finally {
    clearTimeout(timer);
    clearTimeout(grace);
    signal.removeEventListener('abort', cancel);
  }
};

/**
 * Runs one script to its end: it exits, its time is up, or the signal is aborted. In a namespace no process of it is
 * left; without one, none that can be found.
 */
export const runScriptProcess = async (start: ScriptStart, settings: ProcessSettings): Promise<ProcessEnd> => {
  const folder = await makeScriptFolder(start.skill);
  try {
    return await execute(start, settings, folder);
  } finally {
    try {
      await removeScriptFolder(folder);
    } catch (error) {
      // What the script did is done; a mount or an attribute of the file system can hold a folder.
      settings.log.warn({ folder, error }, 'The folder of a script cannot be removed');
    }
  }
};
