/**
 * Puts a function between the configuration that the service loads and what it does with it, in this process and in the programs
 * that its tests start as `acp`: those load the same hook, whatever environment they are given.
 */
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const programSource = (folder, hook, variables) => `import process from 'node:process';
Object.assign(process.env, ${JSON.stringify(variables)});
await import(${JSON.stringify(hook)});
await import(${JSON.stringify(new URL('src/main.ts', folder).href)});
`;

const changesFor = (hook, variables, programFile) => [
  {
    file: '/src/core/config/load.ts',
    change: (source) =>
      `${source.replace('export const loadConfig =', 'const loadFully =')}
export const loadConfig = (input) => globalThis.acpSweep(loadFully(input), configSchema);\n`,
  },
  {
    file: '/test/support/program.ts',
    change(source, url) {
      writeFileSync(programFile, programSource(new URL('../../', url), hook, variables));
      return source
        .replace('await setup.ensureBundled();', '')
        .replace('setup.bundleFile]', `${JSON.stringify(programFile)}]`);
    },
  },
  {
    file: '/test/support/warm-program.ts',
    change: (source) =>
      source
        .replace('[join(import.meta.dirname,', `['--import', ${JSON.stringify(hook)}, join(import.meta.dirname,`)
        .replace("TZ: 'UTC' }", `TZ: 'UTC', ...${JSON.stringify(variables)} }`),
  },
];

/** `hook` is the address of the caller, `variables` what it reads, `programFile` where the start of a program is written. */
export const changeLoadedConfig = ({ hook, variables, programFile, change }) => {
  globalThis.acpSweep = change;
  const changes = changesFor(hook, variables, programFile);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const found = changes.find(({ file }) => url.endsWith(file));
      if (found === undefined) return loaded;
      const source = String(loaded.source);
      const changed = found.change(source, url);
      if (changed === source) throw new Error(`The hook does not find what it changes in ${found.file}.`);
      return { ...loaded, source: changed };
    },
  });
};
