import { join, resolve } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

interface Setup {
  readonly bundleFile: string;
  ensureBundled(): Promise<void>;
}

const root = resolve(import.meta.dirname, '../..');
const setup = (await import(pathToFileURL(join(root, 'bin', 'setup.mjs')).href)) as Setup;

// Here as well as in `npm test`, so that a test that is started in another way does not run an older program.
await setup.ensureBundled();

/** `acp` as a clone runs it: the bundle on the pinned Node. It starts in half the time that the sources need. */
export const program: readonly [command: string, file: string] = [process.execPath, setup.bundleFile];

/** `acp` from its sources, for tests of what loads which module. */
export const programFromSources: readonly [command: string, file: string] = [
  process.execPath,
  join(root, 'src', 'main.ts'),
];

/** Keeps the compiled code between starts, as `bin/acp` does. */
export const programEnvironment: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(root, 'dist', '.compile-cache'),
};
