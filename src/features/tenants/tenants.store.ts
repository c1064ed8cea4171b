import type { Kysely } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { TenantRow } from '../../db/tables/access.ts';
import type { Tables } from '../../db/tables.ts';

const select = (db: Kysely<Tables>, slug: string): Promise<TenantRow | undefined> =>
  db.selectFrom('tenants').selectAll().where('slug', '=', slug).executeTakeFirst();

export const tenantStore = defineStore((storage) => ({
  /** By slug, in the order of its characters. */
  list: (): Promise<readonly TenantRow[]> => storage.db.selectFrom('tenants').selectAll().orderBy('slug').execute(),
  find: (slug: string) => select(storage.db, slug),
  /** Creates or renames; gives the record before and after. Id and time stay those of its creation. */
  save: (row: TenantRow) =>
    storage.atomic(async (db) => {
      const { slug, display_name } = row;
      const before = await select(db, slug);
      if (before === undefined) await db.insertInto('tenants').values(row).execute();
      else await db.updateTable('tenants').set({ display_name }).where('slug', '=', slug).execute();
      return { before, after: before === undefined ? row : { ...before, display_name } };
    }),
  /** Undefined: there was none. */
  remove: (slug: string) =>
    storage.atomic(async (db) => {
      const before = await select(db, slug);
      if (before !== undefined) await db.deleteFrom('tenants').where('slug', '=', slug).execute();
      return before;
    }),
}));

export type TenantStore = StoreOf<typeof tenantStore>;
