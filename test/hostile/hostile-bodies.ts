import { anyJson, filledArray, filledObject, type Hostile, longStrings, tinyElements } from './hostile-json.ts';

/** The members of a JSON schema that decide what a body may hold. */
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
  readonly pattern?: string;
}

/** Deeper places repeat those above them. */
const maxLevels = 5;

const typeOf = ({ type }: Schema): string | undefined => (typeof type === 'string' ? type : type?.[0]);

const formats: Readonly<Record<string, string>> = {
  uuid: '018f0000-0000-7000-8000-000000000000',
  'date-time': '2026-01-01T00:00:00Z',
};

const minimalString = ({ format, minLength = 0 }: Schema): string =>
  formats[format ?? ''] ?? 'a'.repeat(Math.max(1, minLength));

const isOpen = ({ patternProperties, additionalProperties }: Schema): boolean =>
  patternProperties !== undefined || typeof additionalProperties === 'object';

const membersOf = ({ patternProperties, additionalProperties }: Schema): Schema =>
  Object.values(patternProperties ?? {})[0] ?? (typeof additionalProperties === 'object' ? additionalProperties : {});

const objectText = (members: readonly (readonly [string, string])[]): string =>
  `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join()}}`;

/** The shortest value that the schema takes; `whole`: with every member. */
export const textOf = (schema: Schema, whole = false, level = 0): string => {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return JSON.stringify(schema.enum[0]);
  if (schema.anyOf !== undefined) return textOf(schema.anyOf[0] ?? {}, whole, level + 1);
  switch (typeOf(schema)) {
    case 'string':
      return JSON.stringify(minimalString(schema));
    case 'integer':
    case 'number':
      return String(schema.minimum ?? 0);
    case 'boolean':
      return 'false';
    case 'array': {
      const item = (): string => textOf(schema.items ?? {}, whole, level + 1);
      return `[${Array.from({ length: schema.minItems ?? 0 }, item).join()}]`;
    }
    case 'object': {
      const names = whole && level < maxLevels ? Object.keys(schema.properties ?? {}) : (schema.required ?? []);
      return objectText(names.map((name) => [name, textOf(schema.properties?.[name] ?? {}, whole, level + 1)]));
    }
    default:
      return '0';
  }
};

const within = (place: string, { name, make }: Hostile, before: string, after: string): Hostile => ({
  name: `${place}.${name}`,
  make: (bytes) => before + make(Math.max(2, bytes - before.length - after.length)) + after,
});

const ofArray = (schema: Schema, level: number): Hostile[] => {
  const item = schema.items ?? {};
  const elements = new Set((item.anyOf ?? [item]).flatMap((one) => [textOf(one), textOf(one, true)]));
  return [
    ...[...elements].map((element) => filledArray(`elements ${element.slice(0, 40)}`, element)),
    ...tinyElements,
    ...hostileBodies(item, level + 1).map((inner) => within('[0]', inner, '[', ']')),
  ];
};

const ofObject = (schema: Schema, level: number): Hostile[] => {
  const required = (schema.required ?? []).map((name) => [name, textOf(schema.properties?.[name] ?? {})] as const);
  const properties = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const others = objectText(required.filter(([other]) => other !== name)).slice(0, -1);
    const before = `${others}${others.length > 1 ? ',' : ''}${JSON.stringify(name)}:`;
    return hostileBodies(property, level + 1).map((inner) => within(name, inner, before, '}'));
  });
  const begin = objectText(required).slice(0, -1);
  const unknown: Hostile[] = [filledObject('members', '0'), filledObject('members', '{}')];
  const rest = unknown.map(({ name, make }) => ({
    name: `unknown ${name}`,
    make: (bytes: number) =>
      `${begin}${begin.length > 1 ? ',' : ''}${make(Math.max(2, bytes - begin.length)).slice(1)}`,
  }));
  if (!isOpen(schema)) return [...properties, ...rest];
  const member = membersOf(schema);
  const full = [
    filledObject('members that fit', textOf(member)),
    filledObject('whole members', textOf(member, true)),
  ];
  const one = hostileBodies(member, level + 1).map((inner) => within('{a}', inner, '{"a":', '}'));
  return [...properties, ...rest, ...full, ...one];
};

/**
 * Bodies for every place of a schema: each list filled with the shortest and the fullest elements that it takes and with what takes
 * the fewest bytes, each object with members, each text as long as fits, anything at all where any JSON is taken.
 */
export const hostileBodies = (schema: Schema, level = 0): Hostile[] => {
  if (level > maxLevels) return [];
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap((one) => hostileBodies(one, level));
  if (schema.const !== undefined || schema.enum !== undefined) return longStrings.slice(0, 1);
  switch (typeOf(schema)) {
    case 'array':
      return ofArray(schema, level);
    case 'object':
      return ofObject(schema, level);
    case 'string':
      return [...longStrings];
    case undefined:
      return [...anyJson, ...longStrings.slice(0, 1)];
    default:
      return [];
  }
};
