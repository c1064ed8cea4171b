import type { DefinitionDocument } from '../../contract/definition-document.ts';
import type { FieldError } from '../../contract/errors.ts';
import { type DefinitionSources, inDependencyOrder, readDefinitions } from '../definitions/definition-sources.ts';
import type { Terminal } from '../output/terminal.ts';
import type { DeclarationKind, Members } from './declaration-kind.ts';
import { kindOf, kindsInOrder, unknownKind } from './declaration-kinds.ts';

/** One document that can be applied, as far as can be told without the service. */
export interface Declaration {
  readonly kind: DeclarationKind;
  readonly name: string;
  /** Without its kind, words in the schema's spelling. */
  readonly members: Members;
  readonly document: DefinitionDocument;
}

/** A document, or a whole file, that cannot be. */
export interface Fault {
  readonly kind: string | null;
  readonly name: string | null;
  readonly file: string;
  readonly line: number | null;
  readonly errors: readonly (FieldError & { readonly line: number | null })[];
}

export interface Declarations {
  /** So that what one refers to comes before it. */
  readonly declared: readonly Declaration[];
  readonly faults: readonly Fault[];
}

const defaultKind = 'Agent';

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** As far as a document that is refused has one. */
const nameOf = (kind: DeclarationKind, members: Members): string | null =>
  textOrNull(members[kind.namedBy ?? 'name']) === null ? null : kind.nameOf(members);

/** Of a member that the kind does not have, which it has. */
const withKnown = ({ path, message }: FieldError, { schema }: DeclarationKind): FieldError => {
  const properties = (schema as { readonly properties?: Readonly<Record<string, unknown>> } | null)?.properties ?? {};
  const isUnknown = message === 'is not a known field' && !/[.[]/.test(path);
  const known = Object.keys(properties).join(', ');
  return isUnknown && known !== ''
    ? { path, message: `${message}; those of the kind are ${known}` }
    : { path, message };
};

const read = async (sources: DefinitionSources): Promise<Declarations> => {
  const { compileChecker } = await import('../../core/validate.ts');
  const faults: Fault[] = sources.problems.map(({ file, line, name, field, message }) => ({
    kind: null,
    name,
    file,
    line,
    errors: [{ path: field, message, line }],
  }));
  const declared: Declaration[] = [];
  const places = new Map<string, string>();

  const refuse = (
    document: DefinitionDocument,
    kind: string | null,
    name: string | null,
    errors: readonly FieldError[],
  ) =>
    faults.push({
      kind,
      name,
      file: document.file,
      line: document.line,
      errors: errors.map((error) => ({ ...error, line: document.lineOf(error.path) })),
    });

  const checked = (kind: DeclarationKind, members: Members): { members: Members; errors: readonly FieldError[] } => {
    if (kind.schema === null) {
      const errors = textOrNull(members['name']) === null ? [{ path: 'name', message: 'is missing or no text' }] : [];
      return { members, errors };
    }
    const checker = compileChecker(kind.schema);
    const normal = checker.normalize(members) as Members;
    return {
      members: normal,
      errors: checker.check(normal) ? [] : checker.errors(normal).map((error) => withKnown(error, kind)),
    };
  };

  for (const document of sources.documents) {
    const { kind: word = defaultKind, ...rest } = document.value;
    const kind = kindOf(word);
    if (kind === undefined) {
      refuse(document, textOrNull(word), textOrNull(rest['name']), [{ path: 'kind', message: unknownKind(word) }]);
      continue;
    }
    const { members, errors } = checked(kind, rest);
    if (errors.length > 0) {
      refuse(document, kind.kind, nameOf(kind, members), errors);
      continue;
    }
    const name = kind.nameOf(members);
    const place = places.get(`${kind.kind} ${name}`);
    if (place !== undefined) {
      refuse(document, kind.kind, name, [{ path: '', message: `${kind.kind} ${name} is also declared at ${place}` }]);
      continue;
    }
    places.set(`${kind.kind} ${name}`, `${document.file}:${document.line}`);
    declared.push({ kind, name, members, document });
  }

  const byDocument = new Map(declared.map((one) => [one.document, one]));
  const inOrder = kindsInOrder.flatMap((kind) => {
    const own = declared.filter((one) => one.kind === kind).map(({ document }) => document);
    return inDependencyOrder(own).flatMap((document) => byDocument.get(document) ?? []);
  });
  return { declared: inOrder, faults };
};

/** Every declaration of files and folders, and of the standard input for `-`, checked as far as files alone tell. */
export const readDeclarations = async (paths: readonly string[], terminal: Terminal): Promise<Declarations> =>
  read(await readDefinitions(paths, terminal));
