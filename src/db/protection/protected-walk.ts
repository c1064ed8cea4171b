import { type Kysely, sql } from 'kysely';
import { keyNameLength } from '../../core/content-cipher.ts';
import type { Tables } from '../tables.ts';
import { type ProtectedTable, protectedShape } from './protected-rows.ts';

export type StoredValues = Readonly<Record<string, unknown>>;

/** A row of a protected table without its content: enough to tell under which keys it is. */
export interface WalkedRow {
  /** The columns of its primary key, and the tenant where the table has it. */
  readonly place: StoredValues;
  /** The first characters of each protected column that is not null. */
  readonly starts: Readonly<Record<string, string>>;
  /** Of all protected columns. */
  readonly bytes: number;
}

// Their places and first characters take about a megabyte.
const pageSize = 2000;
// Lists in SQL text stay far below what a statement may bind.
const tenantsAtOnce = 500;

type AnyTables = Record<string, Record<string, unknown>>;
const untyped = (db: Kysely<Tables>): Kysely<AnyTables> => db as unknown as Kysely<AnyTables>;

/** Columns of the primary key. */
export const orderOf = (table: ProtectedTable): readonly string[] => {
  const { tenant, key } = protectedShape(table);
  return tenant === 'Key' ? ['tenant_id', ...key] : key;
};

const placeColumns = (table: ProtectedTable): readonly string[] => {
  const { tenant, key } = protectedShape(table);
  return tenant === 'Key' || tenant === 'Column' ? ['tenant_id', ...key] : key;
};

/** Compares the primary key as a whole, which the index of it answers. */
const compared = (table: ProtectedTable, operator: '>' | '>=' | '<=', { place }: WalkedRow) => {
  const order = orderOf(table);
  const values = order.map((column) => sql`${place[column]}`);
  return sql<boolean>`(${sql.join(order.map((column) => sql.ref(column)))}) ${sql.raw(operator)} (${sql.join(values)})`;
};

const walked = (row: StoredValues, table: ProtectedTable): WalkedRow => {
  const starts: Record<string, string> = {};
  let bytes = 0;
  for (const column of protectedShape(table).columns) {
    const start = row[`${column}_start`];
    if (typeof start !== 'string') continue;
    starts[column] = start;
    bytes += Number(row[`${column}_bytes`]);
  }
  return { place: Object.fromEntries(placeColumns(table).map((column) => [column, row[column]])), starts, bytes };
};

const contentColumns = (table: ProtectedTable) =>
  protectedShape(table).columns.flatMap((column) => [
    sql<string | null>`substr(${sql.ref(column)}, 1, ${sql.lit(keyNameLength)})`.as(`${column}_start`),
    sql<number | null>`octet_length(${sql.ref(column)})`.as(`${column}_bytes`),
  ]);

/** The first rows of a table and its last ones, by its primary key; of a short table some are in both. */
export const rowsAtEnds = async (
  db: Kysely<Tables>,
  table: ProtectedTable,
  count: number,
): Promise<readonly WalkedRow[]> => {
  const rows: WalkedRow[] = [];
  for (const direction of ['asc', 'desc'] as const) {
    let query = untyped(db)
      .selectFrom(table)
      .select([...placeColumns(table)])
      .select(contentColumns(table))
      .limit(count);
    for (const column of orderOf(table)) query = query.orderBy(column, direction);
    rows.push(...(await query.execute()).map((row) => walked(row, table)));
  }
  return rows;
};

/** All rows of a table in the order of its primary key, page by page. */
export const protectedPages = async function* (
  db: Kysely<Tables>,
  table: ProtectedTable,
): AsyncGenerator<readonly WalkedRow[], void> {
  const contents = contentColumns(table);
  for (let last: WalkedRow | undefined; ; ) {
    let query = untyped(db)
      .selectFrom(table)
      .select([...placeColumns(table)])
      .select(contents)
      .limit(pageSize);
    for (const column of orderOf(table)) query = query.orderBy(column);
    if (last !== undefined) query = query.where(compared(table, '>', last));
    const page = (await query.execute()).map((row) => walked(row, table));
    if (page.length > 0) yield page;
    last = page.at(-1);
    if (page.length < pageSize) return;
  }
};

/** Rows from one to another with all that is protected in them. */
export const readStretch = (
  db: Kysely<Tables>,
  table: ProtectedTable,
  first: WalkedRow,
  last: WalkedRow,
): Promise<readonly StoredValues[]> => {
  let query = untyped(db)
    .selectFrom(table)
    .select([...placeColumns(table), ...protectedShape(table).columns])
    .where(compared(table, '>=', first))
    .where(compared(table, '<=', last));
  for (const column of orderOf(table)) query = query.orderBy(column);
  return query.execute();
};

/** The tenant of a row; null where what it belonged to is gone. */
export type TenantOf = (row: StoredValues) => string | null;

/** Tells the tenants of these rows and of no others. */
export type FindTenants = (table: ProtectedTable, rows: readonly WalkedRow[]) => Promise<TenantOf>;

export const createTenantFinder = (db: Kysely<Tables>): FindTenants => {
  let runTenants: Promise<readonly string[]> | null = null;

  /** Tenants that have runs, one seek each: the list is short and the runs are many. */
  const tenantsWithRuns = async (): Promise<readonly string[]> => {
    const tenants: string[] = [];
    for (let last = ''; ; ) {
      const { next } = await db
        .selectFrom('runs')
        .select((eb) => eb.fn.min('tenant_id').as('next'))
        .where('tenant_id', '>', last)
        .executeTakeFirstOrThrow();
      if (next === null) return tenants;
      tenants.push(next);
      last = next;
    }
  };

  const ofRuns = async (ids: readonly string[]): Promise<Map<string, string>> => {
    runTenants ??= tenantsWithRuns();
    const tenants = await runTenants;
    const byRun = new Map<string, string>();
    for (let from = 0; from < tenants.length && byRun.size < ids.length; from += tenantsAtOnce) {
      const rows = await db
        .selectFrom('runs')
        .select(['id', 'tenant_id'])
        .where('tenant_id', 'in', tenants.slice(from, from + tenantsAtOnce))
        .where('id', 'in', ids)
        .execute();
      for (const { id, tenant_id: tenantId } of rows) byRun.set(id, tenantId);
    }
    return byRun;
  };

  const ofConversations = async (ids: readonly string[]): Promise<Map<string, string>> => {
    const own = await db
      .selectFrom('sessions')
      .select(['conversation_id as id', 'tenant_id'])
      .where('conversation_id', 'in', ids)
      .execute();
    const byConversation = new Map(own.map(({ id, tenant_id: tenantId }) => [id, tenantId]));
    const missing = ids.filter((id) => !byConversation.has(id));
    if (missing.length === 0) return byConversation;
    // Their sessions are gone, and branches still have their messages.
    const shared = await db
      .selectFrom('conversation_segments')
      .innerJoin('sessions', 'sessions.conversation_id', 'conversation_segments.conversation_id')
      .select(['conversation_segments.source_id as id', 'sessions.tenant_id'])
      .distinct()
      .where('conversation_segments.source_id', 'in', missing)
      .execute();
    for (const { id, tenant_id: tenantId } of shared) byConversation.set(id, tenantId);
    return byConversation;
  };

  return async (table, rows) => {
    const { tenant, key } = protectedShape(table);
    if (tenant === 'Key' || tenant === 'Column') return (row) => String(row['tenant_id']);
    const parent = key[0] ?? '';
    const ids = [...new Set(rows.map(({ place }) => String(place[parent])))];
    const tenants = await (tenant === 'Run' ? ofRuns(ids) : ofConversations(ids));
    return (row) => tenants.get(String(row[parent])) ?? null;
  };
};
