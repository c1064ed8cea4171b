import { isDeepStrictEqual } from 'node:util';
import type { TObject, TProperties } from 'typebox';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../contract/record.ts';
import { closed } from '../../contract/schema.ts';

/** A declaration without its kind, or what the service stores of one. */
export type Members = Readonly<Record<string, unknown>>;

/** Where the label `owner` of a kind stands. */
export type OwnerPlace = 'metadata' | 'labels';

/** What a declaration is judged in, before anything is saved. */
export interface Surroundings {
  readonly client: Client;
  /** Agents that are saved before it. */
  readonly agents: ReadonlySet<string>;
}

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
  /** Null: it carries no labels, and is never pruned. */
  readonly owner: OwnerPlace | null;
  /** By which one is told from the others of its kind. */
  nameOf(members: Members): string;
  /** What is stored, as the service answers it; with a name nothing else need be in it. */
  list(client: Client, name: string | null): Promise<readonly Members[]>;
  /** Creates or replaces it; gives it as it is then. */
  save(client: Client, body: Body, name: string, before: Members | null): Promise<{ readonly body: Members }>;
  remove(client: Client, stored: Members): Promise<unknown>;
  /** The same with one spelling for what can be written in several ways. */
  normal?(members: Members): Members;
  /** Why this declaration cannot be saved; null: it can. */
  refusal?(members: Members): { readonly path: string; readonly message: string } | null;
  /** Throws what saving it would be refused for, as far as that can be told without saving it. */
  foresee?(members: Members, surroundings: Surroundings): Promise<void>;
}

/** One kind of what files can declare: how it is read, compared, applied and printed. */
export interface DeclarationKind extends Omit<KindShape<never>, 'defaults' | 'save' | 'normal' | 'key' | 'body'> {
  /** Of a declaration; null: the service checks all of it. */
  readonly schema: TObject | null;
  /** What it says, whichever way it is written, without what the service adds. */
  content(members: Members): Members;
  save(client: Client, declared: Members, before: Members | null): Promise<Members>;
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

export const declarationKind = <Body extends object>(shape: KindShape<Body>): DeclarationKind => {
  const { key, body, defaults, save, normal = (members) => members, ...rest } = shape;
  const schema = closed({ ...key, ...body.properties });
  return {
    ...rest,
    schema,
    content: (members) => contentBy(schema, defaults as Members, normal(members)),
    async save(client, declared, before) {
      const members = Object.entries(normal(declared)).filter(([name]) => Object.hasOwn(body.properties, name));
      // It fits the schema of a declaration, and the service checks it again.
      return (await save(client, Object.fromEntries(members) as Body, shape.nameOf(declared), before)).body;
    },
  };
};

/** Whose it is; null: nobody says so. */
export const ownerOf = ({ owner }: Pick<DeclarationKind, 'owner'>, members: Members): string | null => {
  const labels = owner === null ? undefined : members[owner];
  const value = isRecord(labels) ? labels['owner'] : undefined;
  return typeof value === 'string' && value !== '' ? value : null;
};
