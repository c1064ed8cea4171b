import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { McpCatalogRow, McpServerRow } from '../../db/tables/mcp.ts';

/** What a look at a server has found. */
export type Found = Pick<
  McpServerRow,
  | 'state'
  | 'protocol_version'
  | 'server_name'
  | 'tool_count'
  | 'dropped_tools'
  | 'checked_at'
  | 'fresh_until'
  | 'catalog_hash'
>;

export const mcpServerStore = defineStore((storage) => {
  const { db } = storage;
  const ofTenant = (tenantId: string) => db.selectFrom('mcp_servers').selectAll().where('tenant_id', '=', tenantId);

  return {
    /** Of all tenants. */
    all: (): Promise<readonly McpServerRow[]> => db.selectFrom('mcp_servers').selectAll().execute(),
    /** By name. */
    list: (tenantId: string): Promise<readonly McpServerRow[]> => ofTenant(tenantId).orderBy('name').execute(),
    find: (tenantId: string, name: string): Promise<McpServerRow | undefined> =>
      ofTenant(tenantId).where('name', '=', name).executeTakeFirst(),
    async save(row: McpServerRow): Promise<void> {
      const { tenant_id: _tenant, name: _name, id: _id, created_at: _created, ...changed } = row;
      await db
        .insertInto('mcp_servers')
        .values(row)
        .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet(changed))
        .execute();
    },
    /** False: there is none. */
    async remove({ tenant_id, name, id }: Pick<McpServerRow, 'tenant_id' | 'name' | 'id'>): Promise<boolean> {
      await db.deleteFrom('mcp_catalogs').where('server_id', '=', id).execute();
      return deletesRow(
        db.deleteFrom('mcp_servers').where('tenant_id', '=', tenant_id).where('id', '=', id).where('name', '=', name),
      );
    },
    /** The row as it is then; undefined: it was removed or saved anew meanwhile, and what was found is not of it. */
    found: (
      { tenant_id, id, updated_at }: Pick<McpServerRow, 'tenant_id' | 'id' | 'updated_at'>,
      found: Found,
    ): Promise<McpServerRow | undefined> =>
      db
        .updateTable('mcp_servers')
        .set(found)
        .where('tenant_id', '=', tenant_id)
        .where('id', '=', id)
        .where('updated_at', '=', updated_at)
        .returningAll()
        .executeTakeFirst(),
    catalog: (serverId: string): Promise<McpCatalogRow | undefined> =>
      db.selectFrom('mcp_catalogs').selectAll().where('server_id', '=', serverId).executeTakeFirst(),
    async listed(serverId: string, tenantId: string, listed: string): Promise<void> {
      await db
        .insertInto('mcp_catalogs')
        .values({ server_id: serverId, tenant_id: tenantId, listed, pinned: null, pinned_by: null, pinned_at: null })
        .onConflict((conflict) => conflict.column('server_id').doUpdateSet({ listed }))
        .execute();
    },
    async pinned(row: McpCatalogRow): Promise<void> {
      const { server_id: _server, tenant_id: _tenant, listed: _listed, ...pin } = row;
      await db
        .insertInto('mcp_catalogs')
        .values(row)
        .onConflict((conflict) => conflict.column('server_id').doUpdateSet(pin))
        .execute();
    },
    /** The row as it is then; undefined: it is gone. */
    pinnedAs: (
      { tenant_id, id }: Pick<McpServerRow, 'tenant_id' | 'id'>,
      pinnedHash: string | null,
    ): Promise<McpServerRow | undefined> =>
      db
        .updateTable('mcp_servers')
        .set({ pinned_hash: pinnedHash })
        .where('tenant_id', '=', tenant_id)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),
  };
});

export type McpServerStore = StoreOf<typeof mcpServerStore>;
