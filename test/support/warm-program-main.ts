/**
 * `acp` that stays: runs one command line after the other, each in the folder and with the variables of a process of
 * its own. `warm-program.ts` starts it, and reads on both streams where the output of a command ends.
 */
import process from 'node:process';
import { Readable } from 'node:stream';
import { run } from '../../src/cli/program.ts';
import { environment } from '../../src/core/environment.ts';
import { eventually } from './eventually.ts';
import type { WarmCall } from './warm-program.ts';

const variables = environment() as Record<string, string | undefined>;
const { console } = globalThis;
const streams = [process.stdout, process.stderr];

/** What keeps the process alive. */
const counted = (): string => process.getActiveResourcesInfo().toSorted().join();
/** Before the first command: its channel and its streams. */
let resting: string | null = null;

const answer = async ({ id, cwd, args, env }: WarmCall): Promise<void> => {
  resting ??= counted();
  for (const name of Object.keys(variables)) delete variables[name];
  Object.assign(variables, env);
  process.chdir(cwd);
  Object.defineProperty(process, 'stdin', { value: Readable.from([]), configurable: true });
  const code = await run([process.execPath, 'acp', ...args]);
  // As a process that was started for the command: it ends when nothing is left that holds it.
  await eventually('nothing of the command is open any more', () => counted() === resting).catch((cause) => {
    throw new Error(`After "acp ${args.join(' ')}" is open: ${counted()} in place of ${resting}`, { cause });
  });
  globalThis.console = console;
  for (const stream of streams) stream.removeAllListeners('error');
  // The folder goes with its test.
  process.chdir('/');
  for (const stream of streams) stream.write(`\x00${id} ${code}\x00`);
};

process.once('disconnect', () => process.exit());
process.on('message', answer);
