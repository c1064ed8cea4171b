import { type ApiKeyScope, apiKeyScopes, type Role, roles } from '../../contract/authority.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { ApiKeyRow } from '../../db/tables/access.ts';

// A word that this build does not know gives no authority.
const knownScopes = (stored: string): ApiKeyScope[] => {
  const words = new Set(JSON.parse(stored) as string[]);
  return apiKeyScopes.filter((scope) => words.has(scope));
};

/** The role and the scopes of a stored key. */
export const authorityOf = (row: ApiKeyRow): { readonly role: Role; readonly scopes: ApiKeyScope[] } => ({
  role: roles.find((role) => role === row.role) ?? 'Reader',
  scopes: knownScopes(row.scopes),
});

export const keyStore = defineStore((storage) => {
  const keys = () => storage.db.selectFrom('api_keys').selectAll();
  return {
    /** All keys of the tenant, newest first. */
    list: (tenantId: string): Promise<readonly ApiKeyRow[]> =>
      keys().where('tenant_id', '=', tenantId).orderBy('created_at', 'desc').orderBy('id', 'desc').execute(),
    /** The one query without a tenant: the key itself says which tenant it belongs to. */
    findByHash: (keyHash: string): Promise<ApiKeyRow | undefined> =>
      keys().where('key_hash', '=', keyHash).executeTakeFirst(),
    async hasActive(now: number): Promise<boolean> {
      const row = await storage.db
        .selectFrom('api_keys')
        .select('id')
        .where('revoked_at', 'is', null)
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },
    async hasActiveFor(scope: ApiKeyScope, now: number): Promise<boolean> {
      const rows = await storage.db
        .selectFrom('api_keys')
        .select('scopes')
        .where('revoked_at', 'is', null)
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
        .where('scopes', 'like', `%"${scope}"%`)
        .limit(1)
        .execute();
      return rows.length > 0;
    },
    find: (tenantId: string, id: string): Promise<ApiKeyRow | undefined> =>
      keys().where('tenant_id', '=', tenantId).where('id', '=', id).executeTakeFirst(),
    async insert(row: ApiKeyRow): Promise<void> {
      await storage.db.insertInto('api_keys').values(row).execute();
    },
    /** False where the tenant has no such key, or it is revoked already. */
    async revoke(tenantId: string, id: string, now: number): Promise<boolean> {
      const { numUpdatedRows } = await storage.db
        .updateTable('api_keys')
        .set({ revoked_at: now })
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },
    async touch(id: string, now: number): Promise<void> {
      await storage.db.updateTable('api_keys').set({ last_used_at: now }).where('id', '=', id).execute();
    },
  };
});

export type KeyStore = StoreOf<typeof keyStore>;
