import process from 'node:process';
import { isSea } from 'node:sea';
import { environment } from '../core/environment.ts';

// glibc gives each thread that allocates an arena of its own, and what V8's compiler threads free there stays resident.
const variable = 'MALLOC_ARENA_MAX';
const serving = new Set(['serve', 'quickstart']);

/**
 * Replaces an executable that is going to serve by itself with one arena for all threads, as bin/acp does for a clone:
 * glibc reads the number before any of our code runs. The process id stays. Elsewhere, and when the variable is set,
 * nothing happens.
 * Design: docs/design/memory.md.
 */
export const limitArenas = (argv: readonly string[]): void => {
  if (process.platform !== 'linux' || process.execve === undefined || !isSea()) return;
  if (environment()[variable] !== undefined || !argv.some((argument) => serving.has(argument))) return;
  const variables = Object.entries(environment()).filter((entry): entry is [string, string] => entry[1] !== undefined);
  process.execve(process.execPath, [process.execPath, ...argv.slice(2)], {
    ...Object.fromEntries(variables),
    [variable]: '1',
  });
};
