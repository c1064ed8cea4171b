import { findKey, valueTree } from './key-path.ts';
import type { LoadedConfig } from './load.ts';
import { type Expansion, expandReferences } from './references.ts';
import { SecretTable } from './secret-table.ts';
import { resolveSecret } from './secrets.ts';

export interface ReferencePlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the file that holds the text. */
  readonly folder: string;
}

/**
 * Replaces `${env:NAME}`, `${file:path}` and `${key:Service:…}` in a text of another file, such as a declared tool.
 * Secrets are read now, so a caller that resolves at each use sees rotated ones.
 */
export const resolveReferences = (loaded: LoadedConfig, text: string, place: ReferencePlace): Expansion =>
  expandReferences(text, { ...place, key: (name) => keyText(loaded, name) });

const keyText = (loaded: LoadedConfig, key: string): Expansion => {
  const secret = resolveSecret(loaded.values, key);
  if (secret !== null) return { ok: true, text: secret, isSecret: true };
  const { node, value } = (/^service:/i.test(key) ? findKey(valueTree, loaded.values, key) : undefined) ?? {};
  if (node?.node !== 'setting') {
    const isSecretSection = value instanceof SecretTable || node?.node === 'secrets';
    return { ok: false, reason: `${key} ${isSecretSection ? 'has no value' : 'is not a key below Service'}` };
  }
  const shown = value === undefined ? null : node.kind.show(value);
  if (shown === null || typeof shown === 'object') return { ok: false, reason: `${key} has no single value` };
  return { ok: true, text: String(shown), isSecret: node.secret || isTainted(loaded, key) };
};

const isTainted = (loaded: LoadedConfig, key: string): boolean =>
  [...loaded.tainted].some((name) => name.toLowerCase() === key.toLowerCase());
