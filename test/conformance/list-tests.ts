/** Prints the names of the tests that the given files register, one JSON text a line. None of them is run. */
import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { registeredTests } from './test-registry.ts';

const registry = new URL('./test-registry.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:test' ? { url: registry, shortCircuit: true } : next(specifier, context),
});

for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href);

const lines = registeredTests().map((name) => `${JSON.stringify(name)}\n`);
// A file may hold something open that only its tests would close.
process.stdout.write(lines.join(''), () => process.exit(0));
