import { isDeepStrictEqual } from 'node:util';
import type { Client } from '../../client/client.ts';
import { AcpError, type FieldError } from '../../contract/errors.ts';
import { checkDefinitions, endsAll, refusalFindings } from '../definitions/check-definitions.ts';
import { reportError } from '../output/error-report.ts';
import type { DeclarationKind, Members } from './declaration-kind.ts';
import type { Declaration, Declarations, Fault } from './read-declarations.ts';

type PlacedField = FieldError & { readonly line: number | null };

/** What became of one declaration, or of what was stored without one; of a dry run, what would. */
export interface Outcome {
  readonly kind: string | null;
  readonly name: string | null;
  readonly action: 'created' | 'updated' | 'unchanged' | 'deleted' | 'failed';
  /** Of kinds that have versions. */
  readonly version: number | null;
  /** Null of what is deleted. */
  readonly file: string | null;
  readonly line: number | null;
  readonly errors?: readonly PlacedField[];
  readonly warnings?: readonly PlacedField[];
  /** What it said before and what it says now; left out where both say the same, and where nothing became of it. */
  readonly change?: { readonly before: Members | null; readonly after: Members | null };
  readonly exitCode: number;
}

export const faultOutcome = ({ kind, name, file, line, errors }: Fault): Outcome => ({
  kind,
  name,
  action: 'failed',
  version: null,
  file,
  line,
  errors,
  exitCode: 2,
});

const versionOf = ({ version }: Members): number | null => (typeof version === 'number' ? version : null);

/** What is stored of a kind, asked for once. An agent is asked for by its name: its list lacks definitions. */
const storedFinder = (client: Client) => {
  const lists = new Map<DeclarationKind, Promise<readonly Members[]>>();
  return async ({ kind, name }: Pick<Declaration, 'kind' | 'name'>): Promise<Members | null> => {
    const asked = kind.schema === null || kind.kind === 'EgressPolicy';
    let list = asked ? kind.list(client, name) : lists.get(kind);
    if (list === undefined) {
      list = kind.list(client, null);
      lists.set(kind, list);
    }
    return (await list).find((stored) => kind.nameOf(stored) === name) ?? null;
  };
};

type StoredFinder = ReturnType<typeof storedFinder>;

const placed = ({ kind, name, document: { file, line } }: Declaration) => ({ kind: kind.kind, name, file, line });

const refused = (declaration: Declaration, error: unknown): Outcome => {
  if (endsAll(error)) throw error;
  const errors = refusalFindings(declaration.document, error).map(({ path, message, line }) => ({
    path,
    message,
    line,
  }));
  return { ...placed(declaration), action: 'failed', version: null, errors, exitCode: reportError(error).exitCode };
};

interface Comparison {
  readonly stored: Members | null;
  readonly change: { readonly before: Members | null; readonly after: Members };
  readonly isSame: boolean;
}

/** Throws for a declaration that says a change, and not all of it. */
const compared = async ({ kind, name, members }: Declaration, find: StoredFinder): Promise<Comparison> => {
  const stored = await find({ kind, name });
  const before = stored === null ? null : kind.content(stored);
  const after = kind.content(members);
  const isSame = before !== null && isDeepStrictEqual(before, after);
  const refusal = isSame ? null : (kind.refusal?.(members) ?? null);
  if (refusal !== null)
    throw new AcpError('validation-failed', `${refusal.path} ${refusal.message}.`, { details: { errors: [refusal] } });
  return { stored, change: { before, after }, isSame };
};

/** What it says once it is saved: with what the service puts in place of what it leaves out. */
const withSaved = ({ kind }: Declaration, after: Members, saved: Members | null): Members =>
  saved === null || kind.schema === null ? after : kind.content({ ...saved, ...after });

/** The service knows spellings that mean the same, and leaves what it has alone. */
const isUnmoved = (stored: Members | null, saved: Members | null): boolean =>
  stored !== null && saved !== null && stored['updatedAt'] === saved['updatedAt'] && stored['id'] === saved['id'];

const apply = async (client: Client, declaration: Declaration, find: StoredFinder): Promise<Outcome> => {
  try {
    const { kind, members } = declaration;
    const { stored, change, isSame } = await compared(declaration, find);
    const place = placed(declaration);
    if (stored !== null && isSame) return { ...place, action: 'unchanged', version: versionOf(stored), exitCode: 0 };
    const saved = await kind.save(client, members, stored);
    const version = versionOf(saved);
    if (isUnmoved(stored, saved)) return { ...place, action: 'unchanged', version, exitCode: 0 };
    const told = { ...change, after: withSaved(declaration, change.after, saved) };
    return { ...place, action: stored === null ? 'created' : 'updated', version, change: told, exitCode: 0 };
  } catch (error) {
    return refused(declaration, error);
  }
};

/** Applies one after the other; what is wrong with one does not stop the next. Rejects where the service is the trouble. */
export const applyDeclarations = async function* (
  client: Client,
  { declared }: Pick<Declarations, 'declared'>,
): AsyncGenerator<Outcome> {
  const find = storedFinder(client);
  for (const declaration of declared) yield await apply(client, declaration, find);
};

/** Whether the only thing wrong with it is that the agent is not there, which a declaration before it makes. */
const waitsForAgent = ({ kind, members }: Declaration, error: unknown, agents: ReadonlySet<string>): boolean => {
  if (!(error instanceof AcpError)) return false;
  const errors = error.details['errors'] as readonly FieldError[] | undefined;
  const agent = kind.agentOf?.(members) ?? null;
  return agent !== null && agents.has(agent) && errors?.length === 1 && errors[0]?.path === 'targetName';
};

/** What the service would store of it; null: that cannot be told. Throws what saving would be refused for. */
const foreseen = async (
  client: Client,
  declaration: Declaration,
  agents: ReadonlySet<string>,
): Promise<Members | null> => {
  const { kind, members } = declaration;
  try {
    return kind.preview === null ? null : await kind.preview(client, members);
  } catch (error) {
    if (waitsForAgent(declaration, error, agents)) return null;
    throw error;
  }
};

const previewOne = async (
  client: Client,
  declaration: Declaration,
  find: StoredFinder,
  agents: ReadonlySet<string>,
): Promise<Outcome> => {
  try {
    const { stored, change, isSame } = await compared(declaration, find);
    const saved = isSame ? null : await foreseen(client, declaration, agents);
    const isKept = isSame || isUnmoved(stored, saved);
    const action = stored === null ? 'created' : isKept ? 'unchanged' : 'updated';
    const current = stored === null ? null : versionOf(stored);
    const hasVersions = declaration.kind.owner === 'metadata';
    const version = hasVersions ? (current ?? 0) + (isKept ? 0 : 1) : null;
    const told = { ...change, after: withSaved(declaration, change.after, saved) };
    return { ...placed(declaration), action, version, ...(isKept ? {} : { change: told }), exitCode: 0 };
  } catch (error) {
    return refused(declaration, error);
  }
};

/** What the service finds in the agents among them, in their order. */
const agentFindings = async function* (client: Client, declared: readonly Declaration[]): AsyncGenerator<Outcome> {
  const agents = declared.filter(({ kind }) => kind.kind === 'Agent');
  const skills = new Set(declared.flatMap(({ kind, name }) => (kind.kind === 'Skill' ? [name] : [])));
  const find = storedFinder(client);
  let index = 0;
  const documents = agents.map(({ document }) => document);
  // A skill of the same files is there by the time that its agent is saved.
  for await (const checked of checkDefinitions(client, { documents, problems: [] }, skills)) {
    const declaration = agents[index++];
    if (declaration === undefined) return;
    const { Error: errors = [], Warning: warnings = [] } = Object.groupBy(checked.findings, ({ severity }) => severity);
    const fieldOf = ({ path, message, line }: PlacedField): PlacedField => ({ path, message, line });
    const place = placed(declaration);
    const told = {
      ...(errors.length === 0 ? {} : { errors: errors.map(fieldOf) }),
      ...(warnings.length === 0 ? {} : { warnings: warnings.map(fieldOf) }),
    };
    if (checked.would === null)
      yield { ...place, action: 'failed', version: null, ...told, exitCode: checked.exitCode };
    else yield { ...(await previewOne(client, declaration, find, new Set())), ...told };
  }
};

/** What applying would do; nothing is written. The service judges all of it, and agents as they would be after the documents before them. */
export const previewDeclarations = async function* (
  client: Client,
  { declared }: Pick<Declarations, 'declared'>,
): AsyncGenerator<Outcome> {
  const find = storedFinder(client);
  const agents = agentFindings(client, declared);
  const saved = new Set<string>();
  for (const declaration of declared) {
    if (declaration.kind.kind !== 'Agent') yield await previewOne(client, declaration, find, saved);
    else {
      const next = await agents.next();
      if (next.done === true) continue;
      if (next.value.action !== 'failed') saved.add(declaration.name);
      yield next.value;
    }
  }
};
