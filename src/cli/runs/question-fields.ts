import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';

export interface Choice {
  readonly value: string;
  readonly title: string;
}

/** A value that a server asks for. */
export interface QuestionField {
  readonly name: string;
  readonly title: string;
  readonly description: string | null;
  readonly kind: 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices';
  /** In the words of a person. */
  readonly expected: string;
  readonly isRequired: boolean;
  /** Undefined: none. */
  readonly preset: Json | undefined;
  readonly choices: readonly Choice[];
  readonly schema: Readonly<Record<string, unknown>>;
}

/** What came of a line: a value, nothing where none has to be given, or why it counts as none. */
export type FieldAnswer = { readonly value: Json | undefined } | { readonly problem: string };

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** `enum` with or without names, and titled constants; null: it is no choice, or one of something else than texts. */
const choicesOf = (schema: Readonly<Record<string, unknown>>): readonly Choice[] | null => {
  const titled = listOf(schema['oneOf'] ?? schema['anyOf']).map((one) =>
    isRecord(one) ? { value: one['const'], title: textOf(one['title']) } : { value: null, title: null },
  );
  const names = listOf(schema['enumNames']);
  const plain = listOf(schema['enum']).map((value, index) => ({ value, title: textOf(names[index]) }));
  const all = [...plain, ...titled].map(({ value, title }) =>
    typeof value === 'string' ? { value, title: title ?? value } : null,
  );
  return all.length > 0 && all.every((choice) => choice !== null) ? all : null;
};

const range = (least: number | null, most: number | null, unit: string): string => {
  if (least !== null && most !== null) return `, ${least} to ${most}${unit}`;
  if (least !== null) return `, at least ${least}${unit}`;
  return most === null ? '' : `, at most ${most}${unit}`;
};

const expectedOf = (kind: QuestionField['kind'], schema: QuestionField['schema']): string => {
  if (kind === 'boolean') return 'y or n';
  if (kind === 'choice') return 'a number of the list';
  if (kind === 'choices')
    return `numbers of the list, with commas${range(numberOf(schema['minItems']), numberOf(schema['maxItems']), ' of them')}`;
  if (kind === 'text') {
    const format = textOf(schema['format']);
    const lengths = range(numberOf(schema['minLength']), numberOf(schema['maxLength']), ' characters');
    return `${format === null ? 'text' : format}${lengths}`;
  }
  const limits = range(numberOf(schema['minimum']), numberOf(schema['maximum']), '');
  return `${kind === 'integer' ? 'whole number' : 'number'}${limits}`;
};

const kindOf = (
  schema: Readonly<Record<string, unknown>>,
): readonly [QuestionField['kind'], readonly Choice[]] | null => {
  const choices = choicesOf(schema);
  if (choices !== null) return ['choice', choices];
  const { type, items } = schema;
  if (type === 'array') {
    const several = isRecord(items) ? choicesOf(items) : null;
    return several === null ? null : ['choices', several];
  }
  if (type === 'string') return ['text', []];
  return type === 'number' || type === 'integer' || type === 'boolean' ? [type, []] : null;
};

/** The values that a schema asks for, one after the other; null: it has others than a line can hold. */
export const questionFields = (schema: Json | null): readonly QuestionField[] | null => {
  if (!isRecord(schema)) return null;
  const { properties = {}, required } = schema;
  if (!isRecord(properties)) return null;
  const needed = new Set(listOf(required));
  const fields = Object.entries(properties).map(([name, property]): QuestionField | null => {
    const found = isRecord(property) ? kindOf(property) : null;
    if (!isRecord(property) || found === null) return null;
    const [kind, choices] = found;
    return {
      ...{ name, kind, choices, schema: property },
      title: textOf(property['title']) ?? name,
      description: textOf(property['description']),
      expected: expectedOf(kind, property),
      isRequired: needed.has(name),
      preset: property['default'] as Json | undefined,
    };
  });
  const isWhole = [...needed].every((name) => typeof name === 'string' && Object.hasOwn(properties, name));
  return isWhole && fields.every((field) => field !== null) ? fields : null;
};

const readNumber = (text: string, { kind, schema, expected }: QuestionField): FieldAnswer => {
  const value = Number(text);
  const least = numberOf(schema['minimum']) ?? Number.NEGATIVE_INFINITY;
  const most = numberOf(schema['maximum']) ?? Number.POSITIVE_INFINITY;
  const isSuch = Number.isFinite(value) && (kind !== 'integer' || Number.isInteger(value));
  return isSuch && value >= least && value <= most ? { value } : { problem: `This takes a ${expected}.` };
};

const readText = (text: string, { schema, expected }: QuestionField): FieldAnswer => {
  // As JSON Schema counts them.
  const { length } = [...text];
  const least = numberOf(schema['minLength']) ?? 0;
  const most = numberOf(schema['maxLength']) ?? Number.POSITIVE_INFINITY;
  return length >= least && length <= most ? { value: text } : { problem: `This takes ${expected}.` };
};

const chosen = (text: string, choices: readonly Choice[]): string | null =>
  choices[Number(text) - 1]?.value ??
  choices.find(({ value, title }) => value === text || title === text)?.value ??
  null;

const readChoices = (text: string, { choices, schema, expected }: QuestionField): FieldAnswer => {
  const values = text.split(',').map((one) => chosen(one.trim(), choices));
  const least = numberOf(schema['minItems']) ?? 0;
  const most = numberOf(schema['maxItems']) ?? Number.POSITIVE_INFINITY;
  const known = [...new Set(values.filter((value) => value !== null))];
  const fits = !values.includes(null) && known.length >= least && known.length <= most;
  return fits ? { value: known } : { problem: `This takes ${expected}.` };
};

const words: Readonly<Record<string, boolean>> = { y: true, yes: true, true: true, n: false, no: false, false: false };

/** A line as the value of a field. An empty one takes what is preset, or leaves out what is not required. */
export const readField = (line: string, field: QuestionField): FieldAnswer => {
  if (line === '') {
    if (field.preset !== undefined) return { value: field.preset };
    return field.isRequired ? { problem: `"${field.title}" has to be given.` } : { value: undefined };
  }
  if (field.kind === 'text') return readText(line, field);
  if (field.kind === 'choices') return readChoices(line, field);
  if (field.kind === 'choice') {
    const value = chosen(line, field.choices);
    return value === null ? { problem: `This takes ${field.expected}.` } : { value };
  }
  if (field.kind !== 'boolean') return readNumber(line, field);
  const value = words[line.toLowerCase()];
  return value === undefined ? { problem: `This takes ${field.expected}.` } : { value };
};
