import type { Kysely } from 'kysely';
import { defineStore } from '../../db/define-store.ts';
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

export interface SavedSkill {
  readonly before: StoredSkill | null;
  readonly after: StoredSkill;
}

export interface SkillStore {
  /** By name, complete. */
  list(tenantId: string): Promise<readonly StoredSkill[]>;
  find(tenantId: string, name: string): Promise<StoredSkill | null>;
  findMany(tenantId: string, names: readonly string[]): Promise<readonly StoredSkill[]>;
  /** Fingerprint of each name, null where there is no such skill. */
  fingerprints(tenantId: string, names: readonly string[]): Promise<readonly (string | null)[]>;
  /** Replaces the whole skill; `id` is that of a new one. The last of concurrent writers wins, none shares a version. */
  save(
    tenantId: string,
    content: SkillContent,
    made: { readonly id: string; readonly at: number },
  ): Promise<SavedSkill>;
  /** Null when there is none. */
  remove(tenantId: string, name: string): Promise<StoredSkill | null>;
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

const rowOf = (db: Kysely<Tables>, tenantId: string, name: string) =>
  db.selectFrom('skills').selectAll().where('tenant_id', '=', tenantId).where('name', '=', name).executeTakeFirst();

export const skillStore = defineStore(
  (storage): SkillStore => ({
    async list(tenantId) {
      const rows = storage.db.selectFrom('skills').selectAll().where('tenant_id', '=', tenantId).orderBy('name');
      return (await rows.execute()).map(fromRow);
    },
    async find(tenantId, name) {
      const row = await rowOf(storage.db, tenantId, name);
      return row === undefined ? null : fromRow(row);
    },
    async findMany(tenantId, names) {
      if (names.length === 0) return [];
      const rows = storage.db.selectFrom('skills').selectAll().where('tenant_id', '=', tenantId);
      return (await rows.where('name', 'in', [...names]).execute()).map(fromRow);
    },
    async fingerprints(tenantId, names) {
      if (names.length === 0) return [];
      const rows = await storage.db
        .selectFrom('skills')
        .select(['name', 'fingerprint'])
        .where('tenant_id', '=', tenantId)
        .where('name', 'in', [...names])
        .execute();
      const known = new Map(rows.map(({ name, fingerprint }) => [name, fingerprint]));
      return names.map((name) => known.get(name) ?? null);
    },
    save: (tenantId, content, made) =>
      storage.atomic(async (db) => {
        const row = await rowOf(db, tenantId, content.name);
        const before = row === undefined ? null : fromRow(row);
        const id = before?.id ?? made.id;
        const version = (before?.version ?? 0) + 1;
        const after: StoredSkill = {
          ...content,
          id,
          tenantId,
          version,
          fingerprint: skillFingerprint(id, version, content),
          createdAt: before?.createdAt ?? made.at,
          updatedAt: made.at,
        };
        const { name, enabled, ...rest } = content;
        const values = {
          version,
          enabled: enabled ? 1 : 0,
          fingerprint: after.fingerprint,
          content: JSON.stringify(rest),
          updated_at: made.at,
        };
        await db
          .insertInto('skills')
          .values({ tenant_id: tenantId, name, id, created_at: after.createdAt, ...values })
          .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet(values))
          .execute();
        return { before, after };
      }),
    remove: (tenantId, name) =>
      storage.atomic(async (db) => {
        const row = await rowOf(db, tenantId, name);
        if (row === undefined) return null;
        await db.deleteFrom('skills').where('tenant_id', '=', tenantId).where('name', '=', name).execute();
        return fromRow(row);
      }),
  }),
);
