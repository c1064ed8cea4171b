/**
 * Loaded before a test file (`node --import`), and breaks nothing: the file that `ACP_SWEEP_SEEN` names gets a line for each
 * setting that a configuration has at another value than its default, and for each such value: `["Host:Url","http://…"]`.
 */
import { appendFileSync } from 'node:fs';
import process from 'node:process';
import { changeLoadedConfig } from './loaded-config.mjs';
import { defaultOf } from './setting-keys.mjs';

const { ACP_SWEEP_SEEN: seen = '' } = process.env;
/** Long enough to tell two values apart. */
const maxTextLength = 80;

/** Names of temporary folders and ports are others at each run. */
const textOf = (value) =>
  (JSON.stringify(value) ?? String(value))
    .replaceAll(/\b(acp-[a-z-]+)[A-Za-z0-9]{6}\b/g, '$1')
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, '$1')
    .slice(0, maxTextLength);

/** Calls `found` with each key that a value sets, as `setting-keys.mjs` names them. */
const visit = (node, value, path, found) => {
  if (value === undefined) return;
  const hasDefault = node.node !== 'group' && !(node.node === 'setting' && node.fallback === undefined);
  if (hasDefault) {
    if (defaultOf(node, value).isDefault) return;
    found(path.join(':'), node.secret === true || node.node === 'secrets' ? 'a secret' : textOf(value));
  }
  if (node.node === 'section') visitMembers(node.group, value, path, found);
  if (node.node === 'group') visitMembers(node, value, path, found);
  if (node.node === 'list') for (const item of value) visit(node.item, item, [...path, '*'], found);
  if (node.node === 'map' && node.entry.node !== 'setting')
    for (const entry of Object.values(value)) visit(node.entry, entry, [...path, '*'], found);
};

const visitMembers = (group, value, path, found) => {
  for (const [name, member] of Object.entries(group.members)) visit(member, value[name], [...path, name], found);
  // The open part of a group has no name of its own in keys.
  for (const [name, open] of Object.entries(group.rest)) visit(open, value[name], path, found);
};

const written = new Set();

changeLoadedConfig({
  hook: import.meta.url,
  variables: { ACP_SWEEP_SEEN: seen },
  programFile: `${seen}.main.mjs`,
  change(loaded, schema) {
    const found = (key, text) => {
      const line = `${JSON.stringify([key, text])}\n`;
      if (written.has(line)) return;
      written.add(line);
      appendFileSync(seen, line);
    };
    visit(schema, loaded.values, [], found);
    return loaded;
  },
});
