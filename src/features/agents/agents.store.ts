import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { defineStore } from '../../db/define-store.ts';
import type { AgentVersionRow, Tables } from '../../db/tables.ts';
import type { AgentContent } from './agents.content.ts';

/** One immutable version of a stored agent. */
export interface StoredAgent {
  readonly tenantId: string;
  readonly name: string;
  readonly version: number;
  readonly content: AgentContent;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
  readonly updatedBy: string | null;
  readonly restoredFrom: number | null;
}

/** Who saves what, and on top of which version; null: whatever is current. */
export interface AgentChange {
  readonly content: AgentContent;
  readonly expectedVersion: number | null;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
}

export interface AgentStore {
  /** Current versions, ordered by name. */
  list(tenantId: string): Promise<readonly StoredAgent[]>;
  find(tenantId: string, name: string): Promise<StoredAgent | null>;
  /** The current versions of those that exist. */
  findMany(tenantId: string, names: readonly string[]): Promise<readonly StoredAgent[]>;
  findVersion(tenantId: string, name: string, version: number): Promise<StoredAgent | null>;
  /** Newest first; empty when there is no such agent. */
  versions(tenantId: string, name: string): Promise<readonly StoredAgent[]>;
  /** Number of the current version for each name, null where there is none. */
  currentVersions(tenantId: string, names: readonly string[]): Promise<readonly (number | null)[]>;
  /** Version 1; null when the name is in use. */
  create(tenantId: string, change: AgentChange): Promise<StoredAgent | null>;
  /** Throws `agent-not-found` or `version-conflict`; concurrent writers get consecutive versions. */
  append(tenantId: string, change: AgentChange): Promise<StoredAgent>;
  /** Appends the content of an earlier version; also throws `version-not-found`. */
  restore(tenantId: string, name: string, version: number, change: Omit<AgentChange, 'content'>): Promise<StoredAgent>;
  /** Removes every version and gives the last one; null when there was none. */
  remove(tenantId: string, name: string): Promise<StoredAgent | null>;
}

// Far below the number of parameters that a statement may have, and few different texts of it.
const namesPerQuery = 200;

const toAgent = (row: AgentVersionRow): StoredAgent => ({
  tenantId: row.tenant_id,
  name: row.name,
  version: row.version,
  content: JSON.parse(row.content) as AgentContent,
  updatedAt: row.updated_at,
  updatedBy: row.updated_by,
  restoredFrom: row.restored_from,
});

const noAgent = (name: string): AcpError => new AcpError('agent-not-found', `There is no agent "${name}".`);

export const missingVersion = (name: string, version: number): AcpError =>
  new AcpError('version-not-found', `The agent "${name}" has no version ${version}.`, {
    details: { missingVersion: version },
  });

const versionRows = (db: Kysely<Tables>, tenantId: string) =>
  db.selectFrom('agent_versions').selectAll('agent_versions').where('agent_versions.tenant_id', '=', tenantId);

const currentRows = (db: Kysely<Tables>, tenantId: string) =>
  versionRows(db, tenantId).innerJoin('agents', (join) =>
    join
      .onRef('agents.tenant_id', '=', 'agent_versions.tenant_id')
      .onRef('agents.name', '=', 'agent_versions.name')
      .onRef('agents.current_version', '=', 'agent_versions.version'),
  );

const chunks = (names: readonly string[]): (readonly string[])[] =>
  Array.from({ length: Math.ceil(names.length / namesPerQuery) }, (_, index) =>
    names.slice(index * namesPerQuery, (index + 1) * namesPerQuery),
  );

const insertVersion = async (db: Kysely<Tables>, agent: StoredAgent): Promise<StoredAgent> => {
  await db
    .insertInto('agent_versions')
    .values({
      tenant_id: agent.tenantId,
      name: agent.name,
      version: agent.version,
      content: JSON.stringify(agent.content),
      updated_at: agent.updatedAt,
      updated_by: agent.updatedBy,
      restored_from: agent.restoredFrom,
    })
    .execute();
  return agent;
};

/**
 * Takes the next version number. The update is the lock: a second writer of the same agent waits for the first and
 * then counts on from its number.
 */
const nextVersion = async (
  db: Kysely<Tables>,
  tenantId: string,
  name: string,
  expectedVersion: number | null,
): Promise<number> => {
  const key = (version: number | null) => ({
    tenant_id: tenantId,
    name,
    ...(version === null ? {} : { current_version: version }),
  });
  const row = await db
    .updateTable('agents')
    .set((eb) => ({ current_version: eb('current_version', '+', 1) }))
    .where((eb) => eb.and(key(expectedVersion)))
    .returning('current_version')
    .executeTakeFirst();
  if (row !== undefined) return row.current_version;
  const head = await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and(key(null)))
    .executeTakeFirst();
  if (head === undefined) throw noAgent(name);
  const detail = `The current version of "${name}" is ${head.current_version}, not ${expectedVersion}.`;
  throw new AcpError('version-conflict', detail);
};

export const agentStore = defineStore(
  (storage): AgentStore => ({
    async list(tenantId) {
      return (await currentRows(storage.db, tenantId).orderBy('agent_versions.name').execute()).map(toAgent);
    },
    async find(tenantId, name) {
      const row = await currentRows(storage.db, tenantId).where('agent_versions.name', '=', name).executeTakeFirst();
      return row === undefined ? null : toAgent(row);
    },
    async findMany(tenantId, names) {
      const found: StoredAgent[] = [];
      for (const chunk of chunks(names))
        found.push(
          ...(await currentRows(storage.db, tenantId).where('agent_versions.name', 'in', chunk).execute()).map(toAgent),
        );
      return found;
    },
    async findVersion(tenantId, name, version) {
      const row = await versionRows(storage.db, tenantId)
        .where('name', '=', name)
        .where('version', '=', version)
        .executeTakeFirst();
      return row === undefined ? null : toAgent(row);
    },
    async versions(tenantId, name) {
      const rows = await versionRows(storage.db, tenantId)
        .where('name', '=', name)
        .orderBy('version', 'desc')
        .execute();
      return rows.map(toAgent);
    },
    async currentVersions(tenantId, names) {
      const known = new Map<string, number>();
      for (const chunk of chunks(names)) {
        const heads = storage.db.selectFrom('agents').select(['name', 'current_version']);
        for (const row of await heads.where('tenant_id', '=', tenantId).where('name', 'in', chunk).execute())
          known.set(row.name, row.current_version);
      }
      return names.map((name) => known.get(name) ?? null);
    },
    create: (tenantId, { content, updatedAt, updatedBy }) =>
      storage.atomic(async (db) => {
        const { name } = content;
        const { numInsertedOrUpdatedRows } = await db
          .insertInto('agents')
          .values({ tenant_id: tenantId, name, current_version: 1 })
          .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doNothing())
          .executeTakeFirstOrThrow();
        if (numInsertedOrUpdatedRows === 0n) return null;
        return insertVersion(db, { tenantId, name, version: 1, content, updatedAt, updatedBy, restoredFrom: null });
      }),
    append: (tenantId, { content, expectedVersion, updatedAt, updatedBy }) =>
      storage.atomic(async (db) => {
        const { name } = content;
        const version = await nextVersion(db, tenantId, name, expectedVersion);
        return insertVersion(db, { tenantId, name, version, content, updatedAt, updatedBy, restoredFrom: null });
      }),
    restore: (tenantId, name, version, { expectedVersion, updatedAt, updatedBy }) =>
      storage.atomic(async (db) => {
        const next = await nextVersion(db, tenantId, name, expectedVersion);
        const source = await versionRows(db, tenantId)
          .where('name', '=', name)
          .where('version', '=', version)
          .executeTakeFirst();
        // The number that a refused rollback took goes back with the transaction.
        if (source === undefined) throw missingVersion(name, version);
        const { content } = toAgent(source);
        return insertVersion(db, {
          tenantId,
          name,
          version: next,
          content,
          updatedAt,
          updatedBy,
          restoredFrom: version,
        });
      }),
    remove: (tenantId, name) =>
      storage.atomic(async (db) => {
        const key = { tenant_id: tenantId, name };
        const last = await currentRows(db, tenantId).where('agent_versions.name', '=', name).executeTakeFirst();
        await db
          .deleteFrom('agents')
          .where((eb) => eb.and(key))
          .execute();
        await db
          .deleteFrom('agent_versions')
          .where((eb) => eb.and(key))
          .execute();
        return last === undefined ? null : toAgent(last);
      }),
  }),
);
