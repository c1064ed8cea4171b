import { Format } from 'typebox/format';
import { Compile, type XSchema } from 'typebox/schema';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import { LinearPattern, StepBudget } from './linear-pattern.ts';
import { keywordKinds, type SchemaMembers, subschemas } from './schema-keywords.ts';

type Validator = ReturnType<typeof Compile>;

/** A check of the library's own kind, for what it would do with the engine's backtracking expressions. */
interface Refinement {
  readonly check: (value: unknown) => boolean;
  readonly error: (value: unknown) => string;
}

/** Where a schema stands: the address of its document, and the pointer inside. */
interface Place {
  readonly document: string;
  readonly pointer: string;
}

const rootAddress = 'schema:/root';
const patternsKeyword = '~patterns';
const additionalKeyword = '~additional';

const pointerPart = (part: string | number): string =>
  encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1'));

const at = ({ document, pointer }: Place, ...parts: (string | number)[]): Place => ({
  document,
  pointer: `${pointer}${parts.map((part) => `/${pointerPart(part)}`).join('')}`,
});

/** Formats whose expressions take the square of the text's length. */
const squareFormats = new Set(['uri', 'uri-reference']);

const formatSteps = (format: string, length: number): number =>
  squareFormats.has(format) ? length + (length * length) / 16 : length;

/**
 * The schema as the validator gets it: its patterns run on RE2, its formats are bounded, and members that go by patterns
 * are checked here, since the library makes its own expression of all names of an object.
 */
class SchemaCompiler {
  readonly budget = new StepBudget();
  readonly #root: unknown;

  constructor(schema: SchemaMembers) {
    const id = typeof schema['$id'] === 'string' ? schema['$id'] : rootAddress;
    const document = new URL(id, rootAddress).href.replace(/#$/, '');
    this.#root = { ...(this.#transformed(schema, { document, pointer: '' }) as SchemaMembers), $id: document };
  }

  validator(): Validator {
    return Compile(this.#root as XSchema);
  }

  #transformed(schema: unknown, outer: Place): unknown {
    if (!isRecord(schema)) return schema;
    const id = outer.pointer === '' ? undefined : schema['$id'];
    const place =
      typeof id === 'string' ? { document: new URL(id, outer.document).href.replace(/#$/, ''), pointer: '' } : outer;
    const result: Record<string, unknown> = {};
    const refinements: Refinement[] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      const kind = keywordKinds.get(keyword);
      if (keyword === 'pattern') result[keyword] = new LinearPattern(String(value), this.budget);
      else if (keyword === 'format' && Format.Has(String(value))) refinements.push(this.#format(String(value)));
      else if (kind === 'schema') result[keyword] = this.#transformed(value, at(place, keyword));
      else if (kind === 'schemas' || kind === 'schemaMap')
        result[keyword] = this.#transformedAll(kind, value, at(place, keyword));
      // Refinements of the given schema are no keyword of JSON Schema.
      else if (kind !== 'patternMap' && !keyword.startsWith('~')) result[keyword] = value;
    }
    if (isRecord(schema['patternProperties']))
      refinements.push(this.#members(schema, schema['patternProperties'], result, place));
    // Absolute, so that it means the same where only a part is compiled.
    if (typeof id === 'string') result['$id'] = place.document;
    if (refinements.length > 0) result['~refine'] = refinements;
    return result;
  }

  #transformedAll(kind: 'schemas' | 'schemaMap', value: unknown, place: Place): unknown {
    const entries = subschemas(kind, value, []).map(
      ([[name = ''], inner]) => [name, this.#transformed(inner, at(place, name))] as const,
    );
    return kind === 'schemas' ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
  }

  #format(format: string): Refinement {
    return {
      check: (value) =>
        typeof value !== 'string' ||
        (this.budget.spend(formatSteps(format, value.length)) && Format.Test(format, value)),
      error: () => `must match format "${format}"`,
    };
  }

  /** A validator of a part, compiled when it is used first; references in it lead where they did. */
  #part(place: Place): () => Validator {
    let made: Validator | undefined;
    return () => {
      made ??= Compile({ $defs: { root: this.#root }, $ref: `${place.document}#${place.pointer}` } as XSchema);
      return made;
    };
  }

  #members(
    { properties, additionalProperties }: SchemaMembers,
    patterns: SchemaMembers,
    result: Record<string, unknown>,
    place: Place,
  ): Refinement {
    const names = new Set(isRecord(properties) ? Object.keys(properties) : []);
    const schemas: unknown[] = [];
    const rules = Object.entries(patterns).map(([pattern, schema], index) => {
      const where = at(place, patternsKeyword, index);
      schemas.push(this.#transformed(schema, where));
      return { pattern: new LinearPattern(pattern, this.budget), validator: this.#part(where) };
    });
    result[patternsKeyword] = schemas;
    delete result['additionalProperties'];
    let additional: (() => Validator) | null = null;
    if (additionalProperties !== undefined) {
      const where = at(place, additionalKeyword);
      result[additionalKeyword] = this.#transformed(additionalProperties, where);
      additional = this.#part(where);
    }
    const misfit = (name: string, member: unknown): boolean => {
      const matching = rules.filter(({ pattern }) => pattern.test(name));
      if (matching.some(({ validator }) => !validator().Check(member))) return true;
      return matching.length === 0 && additional !== null && !names.has(name) && !additional().Check(member);
    };
    const misfits = (value: unknown): string | undefined =>
      isRecord(value) ? Object.entries(value).find(([name, member]) => misfit(name, member))?.[0] : undefined;
    return {
      check: (value) => misfits(value) === undefined,
      error: (value) => `has a member ${JSON.stringify(misfits(value))} that is not allowed or does not fit`,
    };
  }
}

export type CheckedSchema = ReturnType<typeof compileSchema>;

/** Compiles a schema in which nothing was found wrong. */
export const compileSchema = (schema: Json) => {
  const compiler = new SchemaCompiler(schema as SchemaMembers);
  const validator = compiler.validator();
  return {
    check(value: Json): boolean {
      compiler.budget.renew();
      return validator.Check(value);
    },
    /** The library's errors of a value that does not fit. */
    errors(value: Json): readonly unknown[] {
      compiler.budget.renew();
      return validator.Errors(value)[1];
    },
  };
};
