import type { Kysely } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { SkillRow } from '../../db/tables/skills.ts';
import type { Tables } from '../../db/tables.ts';
import { type SkillContent, skillFingerprint } from './skills.content.ts';

/** A skill of a tenant. Times are epoch milliseconds. */
export interface StoredSkill extends SkillContent {
  readonly id: string;
  readonly tenantId: string;
  readonly version: number;
  readonly fingerprint: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

const fromRow = (row: SkillRow): StoredSkill => ({
  ...(JSON.parse(row.content) as Omit<SkillContent, 'name' | 'enabled'>),
  name: row.name,
  enabled: row.enabled === 1,
  id: row.id,
  tenantId: row.tenant_id,
  version: row.version,
  fingerprint: row.fingerprint,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

const skillsOf = (db: Kysely<Tables>, tenantId: string) =>
  db.selectFrom('skills').selectAll().where('tenant_id', '=', tenantId);

const rowOf = (db: Kysely<Tables>, tenantId: string, name: string) =>
  skillsOf(db, tenantId).where('name', '=', name).executeTakeFirst();

interface Made {
  readonly id: string;
  readonly at: number;
}

/** What saving it makes of what is there. */
export const skillAfter = (
  before: StoredSkill | null,
  tenantId: string,
  content: SkillContent,
  made: Made,
): StoredSkill => {
  const id = before?.id ?? made.id;
  const version = (before?.version ?? 0) + 1;
  return {
    ...content,
    id,
    tenantId,
    version,
    fingerprint: skillFingerprint(id, version, content),
    createdAt: before?.createdAt ?? made.at,
    updatedAt: made.at,
  };
};

export const skillStore = defineStore((storage) => ({
  /** By name, complete. */
  async list(tenantId: string): Promise<readonly StoredSkill[]> {
    return (await skillsOf(storage.db, tenantId).orderBy('name').execute()).map(fromRow);
  },
  async find(tenantId: string, name: string): Promise<StoredSkill | null> {
    const row = await rowOf(storage.db, tenantId, name);
    return row === undefined ? null : fromRow(row);
  },
  async findMany(tenantId: string, names: readonly string[]): Promise<readonly StoredSkill[]> {
    if (names.length === 0) return [];
    return (await skillsOf(storage.db, tenantId).where('name', 'in', names).execute()).map(fromRow);
  },
  /** Fingerprint of each name, null where there is no such skill. */
  async fingerprints(tenantId: string, names: readonly string[]): Promise<readonly (string | null)[]> {
    if (names.length === 0) return [];
    const rows = await storage.db
      .selectFrom('skills')
      .select(['name', 'fingerprint'])
      .where('tenant_id', '=', tenantId)
      .where('name', 'in', names)
      .execute();
    const byName = new Map(rows.map(({ name, fingerprint }) => [name, fingerprint]));
    return names.map((name) => byName.get(name) ?? null);
  },
  /** Replaces the whole skill; `id` is that of a new one. The last of concurrent writers wins, none shares a version. */
  save: (tenantId: string, content: SkillContent, made: Made) =>
    storage.atomic(async (db) => {
      const row = await rowOf(db, tenantId, content.name);
      const before = row === undefined ? null : fromRow(row);
      const after = skillAfter(before, tenantId, content, made);
      const { name, enabled, ...rest } = content;
      const values = {
        version: after.version,
        enabled: enabled ? 1 : 0,
        fingerprint: after.fingerprint,
        content: JSON.stringify(rest),
        updated_at: made.at,
      };
      await db
        .insertInto('skills')
        .values({ tenant_id: tenantId, name, id: after.id, created_at: after.createdAt, ...values })
        .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet(values))
        .execute();
      return { before, after };
    }),
  /** Null when there is none. */
  remove: (tenantId: string, name: string) =>
    storage.atomic(async (db) => {
      const row = await rowOf(db, tenantId, name);
      if (row === undefined) return null;
      await db.deleteFrom('skills').where('tenant_id', '=', tenantId).where('name', '=', name).execute();
      return fromRow(row);
    }),
}));

export type SkillStore = StoreOf<typeof skillStore>;
