/**
 * Loaded before a test file (`node --import`): the settings that `ACP_SWEEP_SETTING` names, with `|` between them, keep their default, whatever a test
 * sets, in this process and in the programs that it starts. `ACP_SWEEP_SEEN` names a file that gets a line for each
 * configuration that had set it otherwise. Without one nothing is changed: the control of a red file.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process from 'node:process';
import { isDeepStrictEqual } from 'node:util';

const { ACP_SWEEP_SETTING: key = '', ACP_SWEEP_SEEN: seen = '' } = process.env;

const emptyOf = { section: () => null, map: () => ({}), list: () => [], setting: (node) => node.fallback };

/** The value of a node with the default at the path below it. */
const withDefault = (node, value, path) => {
  const [name, ...below] = path;
  if (name === undefined) {
    // Named secrets are a table of a class of their own, which an absent section leaves empty.
    const fallback = node.node === 'secrets' ? new value.constructor([]) : emptyOf[node.node](node);
    if (isDeepStrictEqual(value, fallback)) return value;
    appendFileSync(seen, `${key}\n`);
    return fallback;
  }
  if (value === null || value === undefined) return value;
  if (node.node === 'section') return withDefault(node.group, value, path);
  if (node.node === 'list') return value.map((item) => withDefault(node.item, item, below));
  if (node.node === 'map')
    return Object.fromEntries(
      Object.entries(value).map(([own, entry]) => [own, withDefault(node.entry, entry, below)]),
    );
  const member = node.members[name];
  if (member !== undefined) return { ...value, [name]: withDefault(member, value[name], below) };
  // The open part of a group has no name of its own in keys.
  const rest = Object.entries(node.rest).map(([own, open]) => [own, withDefault(open, value[own], path)]);
  return { ...value, ...Object.fromEntries(rest) };
};

globalThis.acpSweep = (loaded, schema) =>
  key === ''
    ? loaded
    : {
        ...loaded,
        values: key.split('|').reduce((values, one) => withDefault(schema, values, one.split(':')), loaded.values),
      };

/** What a test starts as `acp`: the sources with this hook, whatever environment it is given. */
const programFile = `${seen}.main.mjs`;
const programSource = (folder) => `import process from 'node:process';
process.env.ACP_SWEEP_SETTING = ${JSON.stringify(key)};
process.env.ACP_SWEEP_SEEN = ${JSON.stringify(seen)};
await import(${JSON.stringify(import.meta.url)});
await import(${JSON.stringify(new URL('src/main.ts', folder).href)});
`;

const changes = [
  {
    file: '/src/core/config/load.ts',
    change: (source) =>
      `${source.replace('export const loadConfig =', 'const loadFully =')}
export const loadConfig = (input) => globalThis.acpSweep(loadFully(input), configSchema);\n`,
  },
  {
    file: '/test/support/program.ts',
    change(source, url) {
      writeFileSync(programFile, programSource(new URL('../../', url)));
      return source
        .replace('await setup.ensureBundled();', '')
        .replace('setup.bundleFile]', `${JSON.stringify(programFile)}]`);
    },
  },
];

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const found = changes.find(({ file }) => url.endsWith(file));
    return found === undefined ? loaded : { ...loaded, source: found.change(String(loaded.source), url) };
  },
});
