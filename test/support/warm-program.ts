import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { environment } from '../../src/core/environment.ts';

/** One command line for `warm-program-main.ts`. */
export interface WarmCall {
  readonly id: string;
  readonly cwd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const names = ['stdout', 'stderr'] as const;

/** They stay for the next command of this process, do not hold it, and end with it. */
const idle: ChildProcess[] = [];

const startWarm = (): ChildProcess => {
  const { NODE_TEST_CONTEXT: _, ...env } = environment();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'warm-program-main.ts')], {
    env: { ...env, TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  for (const name of names) child[name]?.setEncoding('utf8');
  return child;
};

/** What a stream says until the end of this command, and the exit code that stands there; without one where it closes. */
const outputOf = async (
  child: ChildProcess,
  name: (typeof names)[number],
  id: string,
): Promise<[string, number | null]> => {
  let text = '';
  const stream = child[name];
  const end = new RegExp(`\\x00${id} (\\d+)\\x00$`);
  const { promise, resolve } = Promise.withResolvers<[string, number | null]>();
  const read = (part: string): void => {
    text += part;
    const match = end.exec(text);
    if (match !== null) resolve([text.slice(0, match.index), Number(match[1])]);
  };
  const close = (): void => resolve([text, null]);
  stream?.on('data', read).once('close', close);
  const output = await promise;
  stream?.off('data', read).off('close', close);
  return output;
};

/** Whether this process waits for the other one. */
const hold = (child: ChildProcess, holds: boolean): void => {
  const change = holds ? 'ref' : 'unref';
  child[change]();
  child.channel?.[change]();
  for (const name of names) (child[name] as Socket)[change]();
};

/**
 * Runs `acp` to its end in a process that has run other commands before: it is loaded and compiled by then, which is
 * nearly all that a command costs. For what a command does and says, not for how a process starts and is ended.
 */
export const runWarm = async (call: Omit<WarmCall, 'id'>): Promise<Outcome> => {
  const child = idle.pop() ?? startWarm();
  const id = randomUUID();
  hold(child, true);
  child.send({ ...call, id });
  const [[stdout, code], [stderr]] = await Promise.all([outputOf(child, 'stdout', id), outputOf(child, 'stderr', id)]);
  if (code === null) {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return { code: child.exitCode, stdout, stderr };
  }
  hold(child, false);
  idle.push(child);
  return { code, stdout, stderr };
};
