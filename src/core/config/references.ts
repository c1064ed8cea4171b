// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the references of a configuration file look like this
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileErrorReason } from './file-source.ts';

/** A part of a text: literal, or one `${kind:argument}`. */
export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'env' | 'file' | 'key'; readonly argument: string };

/** A text after its references were replaced, or why that was not possible. Reasons never hold a value. */
export type Expansion =
  | { readonly ok: true; readonly text: string; readonly isSecret: boolean }
  | { readonly ok: false; readonly reason: string };

export interface ReferenceSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder that relative `${file:…}` paths start from. */
  readonly folder: string;
  /** The text of a configuration key. */
  key(name: string): Expansion;
}

/** Certificates and tokens are far smaller; a device or a log file must not fill the memory. */
const maxSecretFileBytes = 1_048_576;

const malformed = 'expected ${env:NAME}, ${file:path} or ${key:Service:…}; $${ stands for a literal ${';

const failed = (reason: string): Expansion => ({ ok: false, reason });

/** Splits a text into literals and references. `$${` is a literal `${`. Undefined: it has no references at all. */
export const parseTemplate = (text: string): readonly TemplatePart[] | { readonly reason: string } | undefined => {
  if (!text.includes('${')) return undefined;
  const parts: TemplatePart[] = [];
  let rest = text;
  for (let at = rest.indexOf('${'); at !== -1; at = rest.indexOf('${')) {
    if (rest[at - 1] === '$') {
      parts.push({ kind: 'text', text: `${rest.slice(0, at - 1)}\${` });
      rest = rest.slice(at + 2);
      continue;
    }
    const reference = /^\$\{(env|file|key):([^}]+)\}/.exec(rest.slice(at));
    if (reference === null) return { reason: malformed };
    const [whole, kind, argument = ''] = reference;
    parts.push({ kind: 'text', text: rest.slice(0, at) });
    parts.push({ kind: kind === 'env' ? 'env' : kind === 'file' ? 'file' : 'key', argument: argument.trim() });
    rest = rest.slice(at + whole.length);
  }
  parts.push({ kind: 'text', text: rest });
  return parts.filter((part) => part.kind !== 'text' || part.text !== '');
};

/** The text with every reference replaced. */
export const expandReferences = (text: string, sources: ReferenceSources): Expansion => {
  const parts = parseTemplate(text);
  if (parts === undefined) return { ok: true, text, isSecret: false };
  if ('reason' in parts) return failed(parts.reason);
  let result = '';
  let isSecret = false;
  for (const part of parts) {
    const value = expandPart(part, sources);
    if (!value.ok) return value;
    result += value.text;
    isSecret ||= value.isSecret;
  }
  return { ok: true, text: result, isSecret };
};

const expandPart = (part: TemplatePart, sources: ReferenceSources): Expansion => {
  switch (part.kind) {
    case 'text':
      return { ok: true, text: part.text, isSecret: false };
    case 'env':
      return expandVariable(part.argument, sources.env);
    case 'file':
      return readTextFile(resolve(sources.folder, part.argument));
    case 'key':
      return sources.key(part.argument);
  }
};

export const expandVariable = (name: string, env: ReferenceSources['env']): Expansion => {
  const value = env[name];
  return value === undefined ? failed(`the variable ${name} is not set`) : { ok: true, text: value, isSecret: false };
};

/** Content of a file without its final line end. */
export const readTextFile = (path: string): Expansion => {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) return failed(`cannot read ${path}: it is not a file`);
    if (stat.size > maxSecretFileBytes)
      return failed(`cannot read ${path}: it is larger than ${maxSecretFileBytes} bytes`);
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    return { ok: true, text: text.replace(/\r?\n$/, ''), isSecret: false };
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : fileErrorReason(error);
    return failed(`cannot read ${path}: ${reason}`);
  }
};
