import type { TSchema } from 'typebox';
import {
  anyJson,
  filledObject,
  type HostileJson,
  longNumber,
  longTexts,
  repeatedElement,
  tinyElements,
} from './hostile-json.ts';

/** The keywords of a JSON schema that decide what a body may hold. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly minItems?: number;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly format?: string;
}

/** Deeper places repeat those above them. */
const maxLevels = 5;

const typeOf = ({ type }: Schema): string | undefined => (typeof type === 'string' ? type : type?.[0]);

const formats: Readonly<Record<string, string>> = {
  uuid: '018f0000-0000-7000-8000-000000000000',
  'date-time': '2026-01-01T00:00:00Z',
};

const shortestText = ({ format, minLength = 0 }: Schema): string =>
  formats[format ?? ''] ?? 'a'.repeat(Math.max(1, minLength));

/** The schema of properties that an object takes under any name; null: it takes none. */
const namedByCaller = ({ patternProperties, additionalProperties }: Schema): Schema | null =>
  Object.values(patternProperties ?? {})[0] ?? (typeof additionalProperties === 'object' ? additionalProperties : null);

const objectText = (properties: readonly (readonly [string, string])[]): string =>
  `{${properties.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`;

/** The shortest value that the schema takes; `isFull`: with every property. */
const textOf = (schema: Schema, isFull = false, level = 0): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return JSON.stringify(schema.enum[0]);
  if (schema.anyOf !== undefined) return textOf(schema.anyOf[0] ?? {}, isFull, level + 1);
  switch (typeOf(schema)) {
    case 'string':
      return JSON.stringify(shortestText(schema));
    case 'integer':
    case 'number':
      return String(schema.minimum ?? 0);
    case 'boolean':
      return 'false';
    case 'null':
      return 'null';
    case 'array': {
      const item = textOf(schema.items ?? {}, isFull, level + 1);
      return `[${Array(schema.minItems ?? 0)
        .fill(item)
        .join()}]`;
    }
    case 'object': {
      const { properties = {}, required = [] } = schema;
      const names = isFull && level < maxLevels ? Object.keys(properties) : required;
      return objectText(names.map((name) => [name, textOf(properties[name] ?? {}, isFull, level + 1)]));
    }
    default:
      return '0';
  }
};

const within = (place: string, inner: HostileJson, before: string, after: string): HostileJson => ({
  name: `${place}.${inner.name}`,
  make: (bytes) => before + inner.make(Math.max(2, bytes - before.length - after.length)) + after,
});

const ofArray = ({ items = {} }: Schema, level: number): HostileJson[] => {
  const shortest = textOf(items);
  const full = textOf(items, true);
  const branches = (items.anyOf ?? []).map((branch) => textOf(branch));
  const elements = new Set([shortest, ...branches].filter((element) => element !== '0' && element !== '{}'));
  elements.delete(full);
  return [
    ...tinyElements,
    repeatedElement('full elements', full),
    ...[...elements].map((element) => repeatedElement(`valid elements ${element.slice(0, 40)}`, element)),
    ...hostileBodies(items, level + 1).map((inner) => within('[0]', inner, '[', ']')),
  ];
};

const ofObject = (schema: Schema, level: number): HostileJson[] => {
  const { properties = {}, required = [] } = schema;
  /** The object without one property, ready for another. */
  const begin = (left: string): string => {
    const names = required.filter((name) => name !== left);
    const text = objectText(names.map((name) => [name, textOf(properties[name] ?? {})])).slice(0, -1);
    return names.length > 0 ? `${text},` : text;
  };
  const property = (name: string, inner: HostileJson, place = name): HostileJson =>
    within(place, inner, `${begin(name)}${JSON.stringify(name)}:`, '}');
  const known = Object.entries(properties).flatMap(([name, one]) =>
    hostileBodies(one, level + 1).map((inner) => property(name, inner)),
  );
  const start = begin('');
  const unknown = ['0', '{}'].map((value) => {
    const { make } = filledObject('', value);
    return {
      name: `unknown properties ${value}`,
      make: (bytes: number) => start + make(bytes - start.length).slice(1),
    };
  });
  const inUnknown = anyJson.map((inner) => property('k', inner, '(unknown)'));
  const open = namedByCaller(schema);
  if (open === null) return [...known, ...unknown, ...inUnknown];
  return [
    ...known,
    filledObject('valid properties', textOf(open)),
    filledObject('full properties', textOf(open, true)),
    ...hostileBodies(open, level + 1).map((inner) => property('a', inner)),
  ];
};

/**
 * Bodies for every place of a schema: each list filled with the shortest and the fullest elements that it takes and with those of the
 * fewest bytes, each object with properties, each text as long as fits, and everything where any JSON is taken.
 */
const hostileBodies = (schema: Schema, level = 0): HostileJson[] => {
  if (level > maxLevels) return [];
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap((branch) => hostileBodies(branch, level));
  if (schema.const !== undefined || schema.enum !== undefined) return longTexts.slice(0, 1);
  switch (typeOf(schema)) {
    case 'array':
      return ofArray(schema, level);
    case 'object':
      return ofObject(schema, level);
    case 'string':
      return [...longTexts];
    case undefined:
      return [...anyJson, ...longTexts];
    case 'integer':
    case 'number':
      return [longNumber];
    default:
      return [];
  }
};

/** A request of an operation with a body that grows. */
export interface HostileCall {
  readonly body: HostileJson;
  readonly headers: Readonly<Record<string, string>>;
}

const json = { 'content-type': 'application/json' };

export const hostileCalls = (
  schema: TSchema,
  headers: Readonly<Record<string, string>> = json,
): readonly HostileCall[] => hostileBodies(schema).map((body) => ({ body, headers }));
