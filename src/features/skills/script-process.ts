import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { makeFolder } from '../../core/make-folder.ts';
import { scriptFilePath } from '../../core/skill-folder/skill-folder.ts';
import type { AgentSkill } from './host-skills.ts';
import { killTree } from './kill-tree.ts';
import { ScriptOutput } from './script-output.ts';
import type { AgentSkillScriptDefinition } from './skills.schema.ts';

export interface ProcessSettings {
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Variables that are passed on, already without the service's own. */
  readonly environment: Readonly<Record<string, string>>;
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

/** A private folder with the skill's files at their relative names. */
const prepare = async ({ skill }: ScriptStart): Promise<string> => {
  // Real, so that what a process says about its working folder can be compared with it.
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'acp-skill-')));
  const files = [
    ...skill.resources.map(({ name, content }) => ({ path: name, content })),
    // Scripts come last: one of them is what runs, whatever a resource is called. Siblings may be imported by it.
    ...skill.scripts.map((script) => ({ path: scriptFilePath(script), content: script.content })),
  ];
  for (const { path, content } of files) {
    makeFolder(dirname(join(folder, path)), 0o700);
    await writeFile(join(folder, path), content, { mode: 0o600 });
  }
  return folder;
};

const exitCodeOf = (exitCode: number | undefined, signal: NodeJS.Signals | undefined): number =>
  // As shells report the end by a signal.
  exitCode ?? 128 + (signal === undefined ? 0 : (constants.signals[signal] ?? 0));

const execute = async (start: ScriptStart, settings: ProcessSettings, folder: string): Promise<ProcessEnd> => {
  const { skill, script, interpreter, input, signal } = start;
  const output = new ScriptOutput(settings.maxOutputBytes);
  const file = join(folder, scriptFilePath(script));
  const child = execa(interpreter.Command, [...interpreter.Arguments, file], {
    cwd: folder,
    env: { ...settings.environment, ACP_SKILL_NAME: skill.name, ACP_SKILL_TEMP: folder },
    extendEnv: false,
    shell: false,
    // Its own group, so that what it starts ends with it.
    detached: true,
    input,
    buffer: false,
    reject: false,
  });
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream]?.on('data', (chunk: Uint8Array) => output.add(stream, chunk));
  const { pid } = child;
  let ended: 'timedOut' | 'canceled' | null = null;
  let killing: Promise<void> = Promise.resolve();
  const end = (why: typeof ended): void => {
    ended ??= why;
    if (pid !== undefined) killing = killing.then(() => killTree(pid, folder));
  };
  const cancel = (): void => end('canceled');
  const timer = setTimeout(() => end('timedOut'), settings.timeoutMs);
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  // What the script left behind would hold its output open, and must not outlive it.
  child.nodeChildProcess.once('exit', () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', cancel);
    end(null);
  });
  try {
    const result = await child;
    if (pid === undefined)
      return { kind: 'notStarted', reason: `the interpreter does not start (${result.code ?? 'unknown'})` };
    if (ended !== null) return { kind: ended };
    const exitCode = exitCodeOf(result.exitCode, result.signal);
    return { kind: 'exited', exitCode, text: output.text(exitCode) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', cancel);
    await killing;
  }
};

/** Runs one script to its end: it exits, its time is up, or the signal is aborted. No process of it is left. */
export const runScriptProcess = async (start: ScriptStart, settings: ProcessSettings): Promise<ProcessEnd> => {
  const folder = await prepare(start);
  try {
    return await execute(start, settings, folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
};
