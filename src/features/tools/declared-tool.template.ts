import type { Json } from '../../contract/schema.ts';
import { isJson } from '../../core/documents/json-depth.ts';
import { ToolError } from '../../engine/tools/index.ts';

export const referenceKinds = ['env', 'file', 'key'] as const;
export type ReferenceKind = (typeof referenceKinds)[number];

export interface SecretReference {
  readonly kind: ReferenceKind;
  readonly name: string;
}

/** Text with `{{argument.member}}` placeholders and `${env:NAME}` references in it, in the order as written. */
export type Template = readonly TemplatePart[];

export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'argument'; readonly path: readonly string[] }
  | { readonly kind: 'reference'; readonly reference: SecretReference };

/** What a template is filled with. */
export interface TemplateValues {
  readonly args: Json;
  /** Throws ToolError when the reference has no value. */
  secret(reference: SecretReference): string;
}

const placeholderPattern = /\$\$\{|\$\{([^}]*)\}|\{\{([^{}]*)\}\}/g;
const argumentPath = /^\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*)\s*$/;
const secretReference = /^(env|file|key):(.+)$/s;

const textPart = (text: string): TemplatePart[] => (text === '' ? [] : [{ kind: 'text', text }]);

/** The template of a text, and what is wrong with it. `$${` stands for a literal `${`. */
export const parseTemplate = (text: string): { readonly template: Template; readonly problems: string[] } => {
  const parts: TemplatePart[] = [];
  const problems: string[] = [];
  let literal = '';
  const addLiteral = (piece: string): void => {
    if (piece.includes('{{')) problems.push('has a {{ without an argument name and }}');
    if (piece.includes('${')) problems.push('has a reference without its closing brace');
    literal += piece;
  };
  const add = (part: TemplatePart): void => {
    parts.push(...textPart(literal), part);
    literal = '';
  };
  let end = 0;
  for (const match of text.matchAll(placeholderPattern)) {
    const [token, referenceText, argumentText] = match;
    addLiteral(text.slice(end, match.index));
    end = match.index + token.length;
    if (referenceText !== undefined) {
      const [, kind, name] = secretReference.exec(referenceText) ?? [];
      const referenceKind = referenceKinds.find((candidate) => candidate === kind);
      if (referenceKind === undefined || name === undefined)
        problems.push(`has the reference \${${referenceText}}; references are \${env:…}, \${file:…} and \${key:…}`);
      else add({ kind: 'reference', reference: { kind: referenceKind, name } });
    } else if (argumentText !== undefined) {
      const [, path] = argumentPath.exec(argumentText) ?? [];
      if (path === undefined) problems.push(`has the placeholder {{${argumentText}}}, which is no argument name`);
      else add({ kind: 'argument', path: path.split('.') });
    } else literal += '${';
  }
  addLiteral(text.slice(end));
  parts.push(...textPart(literal));
  return { template: parts, problems };
};

export const argumentPaths = (template: Template): (readonly string[])[] =>
  template.flatMap((part) => (part.kind === 'argument' ? [part.path] : []));

export const references = (template: Template): SecretReference[] =>
  template.flatMap((part) => (part.kind === 'reference' ? [part.reference] : []));

/** Splits at a character of the literal text; values never split anything. `limit` is the most pieces. */
export const splitTemplate = (template: Template, separator: string, limit = Number.POSITIVE_INFINITY): Template[] => {
  const pieces: TemplatePart[][] = [[]];
  for (const part of template) {
    if (part.kind !== 'text') {
      pieces.at(-1)?.push(part);
      continue;
    }
    let rest = part.text;
    for (let at = rest.indexOf(separator); at !== -1 && pieces.length < limit; at = rest.indexOf(separator)) {
      pieces.at(-1)?.push(...textPart(rest.slice(0, at)));
      pieces.push([]);
      rest = rest.slice(at + separator.length);
    }
    pieces.at(-1)?.push(...textPart(rest));
  }
  return pieces;
};

/** The value at a path of own members; undefined when any of them is missing. */
export const argumentAt = (args: Json, path: readonly string[]): Json | undefined =>
  path.reduce<Json | undefined>((value, name) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined;
    return (value as Readonly<Record<string, Json>>)[name];
  }, args);

/** A value inside text: a string as it is, everything else as JSON. Half surrogate pairs are replaced. */
export const valueText = (value: Json): string =>
  (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed();

/**
 * The filled text, `encode` applied to every value and secret but never to the literal text.
 * Null when an argument is missing or null.
 */
export const renderTemplate = (
  template: Template,
  values: TemplateValues,
  encode: (text: string) => string = (text) => text,
): string | null => {
  let text = '';
  for (const part of template) {
    if (part.kind === 'text') text += part.text;
    else if (part.kind === 'reference') text += encode(values.secret(part.reference).toWellFormed());
    else {
      const value = argumentAt(values.args, part.path);
      if (value === undefined || value === null) return null;
      text += encode(valueText(value));
    }
  }
  return text;
};

/** Writes part of a JSON body; undefined: the member or element is left out. */
export type BodyTemplate = (values: TemplateValues) => Json | undefined;

/** Text in a JSON body. A placeholder alone keeps the type of its value. */
export const textBody = (template: Template): BodyTemplate => {
  const [first] = template;
  if (template.length === 1 && first?.kind === 'argument') return ({ args }) => argumentAt(args, first.path);
  return (values) => renderTemplate(template, values) ?? undefined;
};

/** A JSON document written as text: every placeholder and reference becomes a JSON value of its own. */
export const documentBody =
  (template: Template): ((values: TemplateValues) => string) =>
  (values) => {
    const pieces = template.map((part) => {
      if (part.kind === 'text') return part.text;
      if (part.kind === 'reference') return JSON.stringify(values.secret(part.reference));
      return JSON.stringify(argumentAt(values.args, part.path) ?? null);
    });
    return pieces.join('');
  };

/**
 * True when the text is JSON with every placeholder as a value of its own: a string in its place finds those between
 * quotes, a number those that stand for a member's name.
 */
export const isDocumentTemplate = (template: Template): boolean =>
  ['"x"', '0'].every((value) => isJson(template.map((part) => (part.kind === 'text' ? part.text : value)).join('')));

/** A header's value: visible Latin-1 and spaces. Line ends would let a value add headers of its own. */
export const isHeaderValue = (text: string): boolean => /^[\x20-\x7e\xa0-\xff]*$/.test(text);

/** The secrets of one call, remembered so that an answer that repeats them can be masked. */
export const secretReader = (
  resolve: (kind: ReferenceKind, name: string) => string | null,
): { readonly used: Set<string>; secret(reference: SecretReference): string } => {
  const used = new Set<string>();
  return {
    used,
    secret({ kind, name }) {
      const value = resolve(kind, name);
      if (value === null) throw new ToolError('A secret of this tool has no value.');
      used.add(value);
      return value;
    },
  };
};
