import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { AgentVersionRow } from '../../db/tables/agents.ts';
import type { Tables } from '../../db/tables.ts';
import { type AgentContent, currentContent, type EarlierContent } from './agents.content.ts';

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

/** Tells an agent from each that it was before; of one that was created again under its name it is another, too. */
export const stampOf = ({ version, updatedAt }: Pick<StoredAgent, 'version' | 'updatedAt'>): string =>
  `${version} ${updatedAt}`;
export const stampedVersion = (stamp: string): number => Number.parseInt(stamp, 10);

/** Who saves, and on top of which version; null: whatever is current. */
interface Saving {
  readonly expectedVersion: number | null;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
}

// Far below the number of parameters that a statement may have, and few different texts of it.
const namesPerQuery = 200;

const toAgent = (row: AgentVersionRow): StoredAgent => ({
  tenantId: row.tenant_id,
  name: row.name,
  version: row.version,
  content: currentContent(JSON.parse(row.content) as EarlierContent),
  updatedAt: row.updated_at,
  updatedBy: row.updated_by,
  restoredFrom: row.restored_from,
});

export const missingAgent = (name: string): AcpError => new AcpError('agent-not-found', `There is no agent "${name}".`);

export const missingVersion = (name: string, version: number): AcpError =>
  new AcpError('version-not-found', `The agent "${name}" has no version ${version}.`, {
    details: { missingVersion: version },
  });

const chunks = (names: readonly string[]): (readonly string[])[] =>
  Array.from({ length: Math.ceil(names.length / namesPerQuery) }, (_, index) =>
    names.slice(index * namesPerQuery, (index + 1) * namesPerQuery),
  );

const versionRows = (db: Kysely<Tables>, tenantId: string, name: string) =>
  db.selectFrom('agent_versions').selectAll().where('tenant_id', '=', tenantId).where('name', '=', name);

const versionOf = async (
  db: Kysely<Tables>,
  tenantId: string,
  name: string,
  version: number,
): Promise<StoredAgent | null> => {
  const row = await versionRows(db, tenantId, name).where('version', '=', version).executeTakeFirst();
  return row === undefined ? null : toAgent(row);
};

const currentRows = (db: Kysely<Tables>, tenantId: string) =>
  db
    .selectFrom('agent_versions')
    .selectAll('agent_versions')
    .where('agent_versions.tenant_id', '=', tenantId)
    .innerJoin('agents', (join) =>
      join
        .onRef('agents.tenant_id', '=', 'agent_versions.tenant_id')
        .onRef('agents.name', '=', 'agent_versions.name')
        .onRef('agents.current_version', '=', 'agent_versions.version'),
    );

const currentOf = async (db: Kysely<Tables>, tenantId: string, name: string): Promise<StoredAgent | null> => {
  const row = await currentRows(db, tenantId).where('agent_versions.name', '=', name).executeTakeFirst();
  return row === undefined ? null : toAgent(row);
};

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
  const key = { tenant_id: tenantId, name };
  const row = await db
    .updateTable('agents')
    .set((eb) => ({ current_version: eb('current_version', '+', 1) }))
    .where((eb) => eb.and(expectedVersion === null ? key : { ...key, current_version: expectedVersion }))
    .returning('current_version')
    .executeTakeFirst();
  if (row !== undefined) return row.current_version;
  const head = await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and(key))
    .executeTakeFirst();
  if (head === undefined) throw missingAgent(name);
  const detail = `The current version of "${name}" is ${head.current_version}, not ${expectedVersion}.`;
  throw new AcpError('version-conflict', detail);
};

export const agentStore = defineStore((storage) => ({
  /** Current versions, ordered by name. */
  async list(tenantId: string): Promise<readonly StoredAgent[]> {
    return (await currentRows(storage.db, tenantId).orderBy('agent_versions.name').execute()).map(toAgent);
  },
  find: (tenantId: string, name: string) => currentOf(storage.db, tenantId, name),
  /** The current versions of those that exist. */
  async findMany(tenantId: string, names: readonly string[]): Promise<readonly StoredAgent[]> {
    const agents: StoredAgent[] = [];
    for (const chunk of chunks(names)) {
      const rows = await currentRows(storage.db, tenantId).where('agent_versions.name', 'in', chunk).execute();
      agents.push(...rows.map(toAgent));
    }
    return agents;
  },
  findVersion: (tenantId: string, name: string, version: number) => versionOf(storage.db, tenantId, name, version),
  /** Newest first; empty when there is no such agent. */
  async versions(tenantId: string, name: string): Promise<readonly StoredAgent[]> {
    return (await versionRows(storage.db, tenantId, name).orderBy('version', 'desc').execute()).map(toAgent);
  },
  /** Stamp of the current version for each name, null where there is none. */
  async currentStamps(tenantId: string, names: readonly string[]): Promise<readonly (string | null)[]> {
    const stamps = new Map<string, string>();
    for (const chunk of chunks(names)) {
      const heads = currentRows(storage.db, tenantId).where('agent_versions.name', 'in', chunk).clearSelect();
      const columns = ['agent_versions.name', 'agent_versions.version', 'agent_versions.updated_at'] as const;
      for (const { name, version, updated_at: updatedAt } of await heads.select(columns).execute())
        stamps.set(name, stampOf({ version, updatedAt }));
    }
    return names.map((name) => stamps.get(name) ?? null);
  },
  /** Version 1; null when the name is in use. */
  create: (tenantId: string, content: AgentContent, saving: Omit<Saving, 'expectedVersion'>) =>
    storage.atomic(async (db) => {
      const { name } = content;
      const { numInsertedOrUpdatedRows } = await db
        .insertInto('agents')
        .values({ tenant_id: tenantId, name, current_version: 1 })
        .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doNothing())
        .executeTakeFirstOrThrow();
      if (numInsertedOrUpdatedRows === 0n) return null;
      return insertVersion(db, { tenantId, name, version: 1, content, ...saving, restoredFrom: null });
    }),
  /** Throws `agent-not-found` or `version-conflict`; concurrent writers get consecutive versions. */
  append: (tenantId: string, content: AgentContent, { expectedVersion, ...saving }: Saving) =>
    storage.atomic(async (db) => {
      const { name } = content;
      const version = await nextVersion(db, tenantId, name, expectedVersion);
      return insertVersion(db, { tenantId, name, version, content, ...saving, restoredFrom: null });
    }),
  /** Appends the content of an earlier version; also throws `version-not-found`. */
  restore: (tenantId: string, name: string, restoredFrom: number, { expectedVersion, ...saving }: Saving) =>
    storage.atomic(async (db) => {
      const version = await nextVersion(db, tenantId, name, expectedVersion);
      const source = await versionOf(db, tenantId, name, restoredFrom);
      // The number that a refused rollback took goes back with the transaction.
      if (source === null) throw missingVersion(name, restoredFrom);
      return insertVersion(db, { tenantId, name, version, content: source.content, ...saving, restoredFrom });
    }),
  /** Removes every version and gives the last one; null when there was none. */
  remove: (tenantId: string, name: string) =>
    storage.atomic(async (db) => {
      const last = await currentOf(db, tenantId, name);
      for (const table of ['agents', 'agent_versions'] as const)
        await db.deleteFrom(table).where('tenant_id', '=', tenantId).where('name', '=', name).execute();
      return last;
    }),
}));

export type AgentStore = StoreOf<typeof agentStore>;
