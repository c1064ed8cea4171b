/**
 * Loaded before a test file (`node --import`): the settings that `ACP_SWEEP_SETTING` names, with `|` between them, keep their default, whatever a test
 * sets, in this process and in the programs that it starts. `ACP_SWEEP_SEEN` names a file that gets a line for each
 * configuration that had set it otherwise. Without one nothing is changed: the control of a red file.
 */
import { appendFileSync } from 'node:fs';
import process from 'node:process';
import { changeLoadedConfig } from './loaded-config.mjs';
import { defaultOf } from './setting-keys.mjs';

const { ACP_SWEEP_SETTING: key = '', ACP_SWEEP_SEEN: seen = '' } = process.env;

/** The value of a node with the default at the path below it. */
const withDefault = (node, value, path) => {
  const [name, ...below] = path;
  // The open part of a group has no name of its own in keys.
  const inRest = () => Object.entries(node.rest).map(([own, open]) => [own, withDefault(open, value[own], path)]);
  if (name === undefined && node.node === 'group') return { ...value, ...Object.fromEntries(inRest()) };
  if (name === undefined) {
    const { fallback, isDefault } = defaultOf(node, value);
    if (isDefault) return value;
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
  return { ...value, ...Object.fromEntries(inRest()) };
};

changeLoadedConfig({
  hook: import.meta.url,
  variables: { ACP_SWEEP_SETTING: key, ACP_SWEEP_SEEN: seen },
  programFile: `${seen}.main.mjs`,
  change: (loaded, schema) =>
    key === ''
      ? loaded
      : {
          ...loaded,
          values: key.split('|').reduce((values, one) => withDefault(schema, values, one.split(':')), loaded.values),
        },
});
