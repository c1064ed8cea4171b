import { resolve } from 'node:path';
import type { KeyLookup } from './key-lookup.ts';
import type { RawValue } from './raw-value.ts';
import { parseTemplate, readTextFile, type TemplatePart } from './references.ts';
import type { Config } from './schema.ts';
import { parseSecretKey, secretId } from './secret-name.ts';
import type { SecretPart, SecretTable } from './secret-table.ts';

const missing: SecretPart = { kind: 'missing' };

/**
 * Prepares one value of a secret: what cannot change is resolved now, files and other secrets are read at each use.
 * `reason` says why the secret has no value at this moment.
 */
export const readSecret = (
  raw: RawValue,
  lookup: KeyLookup,
): { parts: readonly SecretPart[]; reason: string | null } => {
  if (raw.kind !== 'scalar' || typeof raw.value !== 'string') return { parts: [missing], reason: 'none is given' };
  const template = raw.source.kind === 'file' ? parseTemplate(raw.value) : undefined;
  if (template === undefined)
    return { parts: [{ kind: 'text', text: raw.value }], reason: raw.value === '' ? 'it is empty' : null };
  if ('reason' in template) return { parts: [missing], reason: template.reason };
  const now = lookup.expand(raw);
  const folder = lookup.folderOf(raw);
  const parts = template.map((part) => secretPart(part, folder, lookup));
  return { parts, reason: now.ok ? (now.text === '' ? 'it is empty' : null) : now.reason };
};

const secretPart = (part: TemplatePart, folder: string, lookup: KeyLookup): SecretPart => {
  if (part.kind === 'text') return part;
  if (part.kind === 'file') return { kind: 'file', path: resolve(folder, part.argument) };
  if (part.kind === 'key' && parseSecretKey(part.argument) !== null) return { kind: 'key', key: part.argument };
  const value = part.kind === 'key' ? lookup.text(part.argument) : lookup.variable(part.argument);
  return value.ok ? { kind: 'text', text: value.text } : missing;
};

/**
 * The values of a secret that a record names, such as `Service:WebhookSecrets:crm`: several while it rotates, none
 * when the key is unknown, empty or outside the four secret sections. Files are read on every call.
 */
export const resolveSecrets = (config: Config, key: string): readonly string[] => secretValues(config, key, []);

/** The first value of a secret; null when it has none at this moment. */
export const resolveSecret = (config: Config, key: string): string | null => resolveSecrets(config, key)[0] ?? null;

const secretValues = (config: Config, key: string, open: readonly string[]): readonly string[] => {
  const parsed = parseSecretKey(key);
  if (parsed === null) return [];
  const table: SecretTable = config.Service[parsed.section];
  const id = `${parsed.section}:${secretId(parsed.name)}`;
  const entry = open.includes(id) ? undefined : table.get(parsed.name);
  const values = entry?.values.map((parts) => parts.map((part) => partText(config, part, [...open, id])));
  return (values ?? [])
    .filter((texts) => !texts.includes(null))
    .map((texts) => texts.join(''))
    .filter((text) => text !== '');
};

const partText = (config: Config, part: SecretPart, open: readonly string[]): string | null => {
  switch (part.kind) {
    case 'text':
      return part.text;
    case 'file': {
      const content = readTextFile(part.path);
      return content.ok ? content.text : null;
    }
    case 'key':
      return secretValues(config, part.key, open)[0] ?? null;
    case 'missing':
      return null;
  }
};
