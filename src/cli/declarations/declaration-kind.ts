import { isDeepStrictEqual } from 'node:util';
import type { TObject, TProperties } from 'typebox';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../contract/record.ts';
import type { SaveQuery } from '../../contract/save-query.ts';
import { closed } from '../../contract/schema.ts';

/** A declaration without its kind, or what the service stores of one. */
export type Members = Readonly<Record<string, unknown>>;

/** Where the label `owner` of a kind stands. */
export type OwnerPlace = 'metadata' | 'labels';

interface KindShape<Body extends object> {
  readonly kind: string;
  /** Kinds that it refers to: they are applied before it and deleted after it. */
  readonly dependsOn: readonly string[];
  /** Members of a declaration that are no part of the body, since they stand in the path. */
  readonly key: TProperties;
  /** Body of the operation that saves it. */
  readonly body: TObject;
  /** What an omitted member stands for. */
  readonly defaults: Partial<Body>;
  readonly owner: OwnerPlace;
  /** Member without which it has no name; default `name`. */
  readonly namedBy?: string;
  /** By which one is told from the others of its kind. */
  nameOf(members: Members): string;
  /** What is stored, as the service answers it; with a name nothing else need be in it. */
  list(client: Client, name: string | null): Promise<readonly Members[]>;
  /** Creates or replaces it; gives it as it is then, or in a dry run as it would be. */
  save(client: Client, body: Body, name: string, query: SaveQuery): Promise<{ readonly body: Members }>;
  remove(client: Client, stored: Members): Promise<unknown>;
  /** The same with one spelling for what can be written in several ways. */
  normal?(members: Members): Members;
  /** Why this declaration cannot be saved; null: it can. */
  refusal?(members: Members): { readonly path: string; readonly message: string } | null;
  /** The agent that has to be there before the service can judge it; null: none. */
  agentOf?(members: Members): string | null;
}

/** One kind of what files can declare: how it is read, compared, applied and printed. Design: docs/design/declarations.md. */
export interface DeclarationKind extends Omit<KindShape<never>, 'defaults' | 'save' | 'normal' | 'key' | 'body'> {
  /** Of a declaration; null: the service checks all of it. */
  readonly schema: TObject | null;
  /** What it says, whichever way it is written, without what the service adds. */
  content(members: Members): Members;
  save(client: Client, declared: Members, before: Members | null): Promise<Members>;
  /** What saving would give, or be refused for; null: only the service's check of all agents tells. */
  readonly preview: ((client: Client, declared: Members) => Promise<Members>) | null;
}

/** Members that a schema has, in its order, without those that say what leaving them out says. */
const contentBy = (schema: TObject, defaults: Members, members: Members): Members =>
  Object.fromEntries(
    Object.keys(schema.properties).flatMap((name) => {
      const value = members[name];
      // Null says the same as nothing in every body.
      const says = value !== undefined && value !== null && !isDeepStrictEqual(value, defaults[name]);
      return says ? [[name, value]] : [];
    }),
  );

/** When what is stored was saved last: a change that somebody else makes after that stays. */
const timeOf = (before: Members | null): string => {
  const updatedAt = before?.['updatedAt'];
  return typeof updatedAt === 'string' ? updatedAt : 'none';
};

export const declarationKind = <Body extends object>(shape: KindShape<Body>): DeclarationKind => {
  const { key, body, defaults, save, normal = (members) => members, ...rest } = shape;
  const schema = closed({ ...key, ...body.properties });
  const saved = async (client: Client, declared: Members, query: SaveQuery): Promise<Members> => {
    const members = Object.entries(normal(declared)).filter(([name]) => Object.hasOwn(body.properties, name));
    // It fits the schema of a declaration, and the service checks it again.
    return (await save(client, Object.fromEntries(members) as Body, shape.nameOf(declared), query)).body;
  };
  return {
    ...rest,
    schema,
    content: (members) => contentBy(schema, defaults as Members, normal(members)),
    save: (client, declared, before) => saved(client, declared, { expectedUpdatedAt: timeOf(before) }),
    preview: (client, declared) => saved(client, declared, { dryRun: true }),
  };
};

/** Whose it is; null: nobody says so. */
export const ownerOf = ({ owner }: Pick<DeclarationKind, 'owner'>, members: Members): string | null => {
  const labels = members[owner];
  const value = isRecord(labels) ? labels['owner'] : undefined;
  return typeof value === 'string' && value !== '' ? value : null;
};
