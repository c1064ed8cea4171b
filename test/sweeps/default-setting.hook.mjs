/**
 * Loaded before a test file (`node --import`): the setting that `ACP_SWEEP_SETTING` names keeps its default, whatever a test
 * sets. `ACP_SWEEP_SEEN` names a file that gets a line for each configuration that had set it otherwise.
 */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process from 'node:process';
import { isDeepStrictEqual } from 'node:util';

const { ACP_SWEEP_SETTING: key = '', ACP_SWEEP_SEEN: seen = '' } = process.env;
const path = key.split(':');

const at = (values) => path.reduce((value, name) => value?.[name], values);

/** The configuration with the default of the setting in place of its value. */
const withDefault = (loaded, defaults) => {
  const parent = path.slice(0, -1).reduce((value, name) => value?.[name], loaded.values);
  const fallback = at(defaults.values);
  if (parent === undefined || isDeepStrictEqual(at(loaded.values), fallback)) return loaded;
  appendFileSync(seen, `${key}\n`);
  const values = structuredClone(loaded.values);
  path.slice(0, -1).reduce((value, name) => value[name], values)[path.at(-1)] = fallback;
  return { ...loaded, values };
};

globalThis.acpSweep = (load, input) => withDefault(load(input), load({ env: {}, cwd: '/nowhere' }));

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith('/src/core/config/load.ts')) return loaded;
    const source = String(loaded.source).replace('export const loadConfig =', 'const loadFully =');
    return {
      ...loaded,
      source: `${source}\nexport const loadConfig = (input) => globalThis.acpSweep(loadFully, input);\n`,
    };
  },
});
