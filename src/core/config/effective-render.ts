import { valueTree } from './key-path.ts';
import type { LoadedConfig } from './load.ts';
import { type ConfigSource, defaultSource, describeSource } from './raw-value.ts';
import { configSchema } from './schema.ts';
import type { ConfigNode } from './schema-nodes.ts';
import { type SecretEntry, SecretTable } from './secret-table.ts';
import type { Shown } from './value-kind.ts';

const mask = '***';

/** One key of the effective tree; the value of a secret is masked, null when it has none. */
interface EffectiveSetting {
  readonly key: string;
  readonly value: Shown;
  readonly secret: boolean;
  readonly source: ConfigSource;
}

/** The effective tree for `acp config`: every key, its value and where that comes from; never a secret. */
export const renderEffective = (loaded: LoadedConfig, options: { readonly json: boolean }): string => {
  const settings = effectiveSettings(loaded);
  if (options.json) return `${JSON.stringify({ file: loaded.file, settings, warnings: loaded.warnings }, null, 2)}\n`;
  const width = Math.max(...settings.map(({ key }) => key.length));
  const lines = settings.map(
    ({ key, value, source }) => `${key.padEnd(width)}  ${JSON.stringify(value)}  (${describeSource(source)})`,
  );
  return `${lines.join('\n')}\n`;
};

const effectiveSettings = (loaded: LoadedConfig): readonly EffectiveSetting[] =>
  [...below(configSchema, loaded.values, [])].map(({ key, value, secret }) => {
    const isSecret = secret || loaded.tainted.has(key);
    const shown = isSecret && value !== null ? mask : value;
    return { key, value: shown, secret: isSecret, source: loaded.sources.get(key) ?? defaultSource };
  });

type Row = Omit<EffectiveSetting, 'source'>;

const below = function* (node: ConfigNode, value: unknown, path: readonly string[]): Generator<Row> {
  switch (node.node) {
    case 'setting':
      yield { key: path.join(':'), value: node.kind.show(value), secret: node.secret };
      return;
    case 'group':
      for (const [name, child] of Object.entries(node.members))
        yield* below(child, valueTree.child(value, name), [...path, name]);
      for (const [name, child] of Object.entries(node.rest)) yield* below(child, valueTree.child(value, name), path);
      return;
    case 'section':
      if (value === null) yield { key: path.join(':'), value: null, secret: false };
      else yield* below(node.group, value, path);
      return;
    case 'map':
      for (const [name, entry] of Object.entries(value ?? {})) yield* below(node.entry, entry, [...path, name]);
      return;
    case 'list':
      yield* listRows(node.item, value, path);
      return;
    case 'secrets':
      for (const entry of value instanceof SecretTable ? value.entries() : [])
        yield { key: [...path, entry.name].join(':'), value: hasValue(entry) ? mask : null, secret: true };
      return;
  }
};

const listRows = function* (item: ConfigNode, value: unknown, path: readonly string[]): Generator<Row> {
  const items = Array.isArray(value) ? value : [];
  if (items.length === 0) yield { key: path.join(':'), value: [], secret: false };
  for (const [index, entry] of items.entries()) yield* below(item, entry, [...path, String(index)]);
};

const hasValue = (entry: SecretEntry): boolean =>
  entry.values.some(
    (parts) =>
      !parts.some((part) => part.kind === 'missing') && parts.some((part) => part.kind !== 'text' || part.text !== ''),
  );
