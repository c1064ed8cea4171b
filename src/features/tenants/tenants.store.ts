import type { Kysely } from 'kysely';
import { defineStore } from '../../db/define-store.ts';
import type { TenantRow } from '../../db/tables/access.ts';
import type { Tables } from '../../db/tables.ts';

/** A label of a tenant; its time is epoch milliseconds. */
export interface StoredTenant {
  readonly id: string;
  readonly slug: string;
  readonly displayName: string;
  readonly createdAt: number;
}

export interface TenantStore {
  /** By slug, in the order of its characters. */
  list(): Promise<readonly StoredTenant[]>;
  find(slug: string): Promise<StoredTenant | null>;
  /** Creates or renames; gives the record before and after. Id and time stay those of its creation. */
  save(tenant: StoredTenant): Promise<{ readonly before: StoredTenant | null; readonly after: StoredTenant }>;
  /** Null: there was none. */
  remove(slug: string): Promise<StoredTenant | null>;
}

const fromRow = (row: TenantRow): StoredTenant => ({
  id: row.id,
  slug: row.slug,
  displayName: row.display_name,
  createdAt: row.created_at,
});

const select = async (db: Kysely<Tables>, slug: string): Promise<StoredTenant | null> => {
  const row = await db.selectFrom('tenants').selectAll().where('slug', '=', slug).executeTakeFirst();
  return row === undefined ? null : fromRow(row);
};

export const tenantStore = defineStore(
  (storage): TenantStore => ({
    async list() {
      return (await storage.db.selectFrom('tenants').selectAll().orderBy('slug').execute()).map(fromRow);
    },
    find: (slug) => select(storage.db, slug),
    save: (tenant) =>
      storage.atomic(async (db) => {
        const { id, slug, displayName, createdAt } = tenant;
        const before = await select(db, slug);
        if (before === null)
          await db
            .insertInto('tenants')
            .values({ id, slug, display_name: displayName, created_at: createdAt })
            .execute();
        else await db.updateTable('tenants').set({ display_name: displayName }).where('slug', '=', slug).execute();
        return { before, after: before === null ? tenant : { ...before, displayName } };
      }),
    remove: (slug) =>
      storage.atomic(async (db) => {
        const before = await select(db, slug);
        if (before !== null) await db.deleteFrom('tenants').where('slug', '=', slug).execute();
        return before;
      }),
  }),
);
