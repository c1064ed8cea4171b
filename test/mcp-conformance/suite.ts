import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const manifest = fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/package.json'));
const cli = join(dirname(manifest), 'dist/index.js');

/** Revisions whose requirements are frozen, one of each generation. */
export const revisions = ['2025-11-25', '2026-07-28'] as const;

/** A program of these tests as a command of the suite's, which hands it to a shell. */
export const command = (file: string, ...args: readonly string[]): string =>
  [process.execPath, resolve(import.meta.dirname, file), ...args].map((part) => `"${part}"`).join(' ');

export interface SuiteRun {
  readonly code: number;
  readonly output: string;
}

/** The suite with these arguments; what takes longer than `limitMs` is stopped and has failed. */
export const runSuite = async (
  args: readonly string[],
  { env = {}, limitMs }: { readonly env?: Readonly<Record<string, string>>; readonly limitMs: number },
): Promise<SuiteRun> => {
  const child = spawn(process.execPath, [cli, ...args], {
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (part: Buffer) => {
      output += part.toString();
    });
  const timer = setTimeout(() => child.kill('SIGKILL'), limitMs);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code: code ?? 1, output: code === null ? `${output}\nIt took longer than ${limitMs} ms.` : output };
};

export interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
  readonly details?: unknown;
}

/** What a run of the suite has left in its folder: the checks of each scenario. */
export const checksIn = (folder: string): ReadonlyMap<string, readonly Check[]> =>
  new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('checks.json'))
      .map((file) => [
        dirname(file)
          .replace(/^server-/, '')
          .replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, ''),
        JSON.parse(readFileSync(join(folder, file), 'utf8')) as Check[],
      ]),
  );

/** Scenarios that a revision requires of one side. */
export const requiredScenarios = (revision: string, side: 'client' | 'server'): readonly string[] => {
  const file = join(dirname(manifest), 'requirements', `${revision}.yaml`);
  const { [side]: scenarios } = parse(readFileSync(file, 'utf8')) as Readonly<Record<string, readonly string[]>>;
  if (scenarios === undefined) throw new Error(`${file} requires nothing of a ${side}.`);
  return scenarios;
};
