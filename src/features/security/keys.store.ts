import { type ApiKeyScope, apiKeyScopes, type Role, roles } from '../../contract/authority.ts';
import { defineStore } from '../../db/define-store.ts';
import { updateStatement } from '../../db/statement.ts';
import type { ApiKeyRow } from '../../db/tables/access.ts';

/** An API key as stored: its plaintext is nowhere. Times are epoch milliseconds. */
export interface StoredKey {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly keyHash: string;
  readonly keyPrefix: string;
  readonly role: Role;
  readonly scopes: readonly ApiKeyScope[];
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
  readonly createdBy: string | null;
  readonly createdAt: number;
}

export interface KeyStore {
  /** All keys of the tenant, newest first. */
  list(tenantId: string): Promise<readonly StoredKey[]>;
  /** The one query without a tenant: the key itself says which tenant it belongs to. */
  findByHash(keyHash: string): Promise<StoredKey | null>;
  hasActive(now: number): Promise<boolean>;
  find(tenantId: string, id: string): Promise<StoredKey | null>;
  insert(key: StoredKey): Promise<void>;
  /** False where the tenant has no such key, or it is revoked already. */
  revoke(tenantId: string, id: string, now: number): Promise<boolean>;
  touch(id: string, now: number): Promise<void>;
}

// A word that this build does not know gives no authority.
const knownScopes = (stored: string): ApiKeyScope[] => {
  const words = new Set(JSON.parse(stored) as string[]);
  return apiKeyScopes.filter((scope) => words.has(scope));
};

const fromRow = (row: ApiKeyRow): StoredKey => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  keyHash: row.key_hash,
  keyPrefix: row.key_prefix,
  role: roles.find((role) => role === row.role) ?? 'Reader',
  scopes: knownScopes(row.scopes),
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
  lastUsedAt: row.last_used_at,
  createdBy: row.created_by,
  createdAt: row.created_at,
});

export const keyStore = defineStore((storage): KeyStore => {
  const touchKey = updateStatement(storage.db, 'api_keys', ['last_used_at'], ['id']);
  return {
    async list(tenantId) {
      const rows = await storage.db
        .selectFrom('api_keys')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .execute();
      return rows.map(fromRow);
    },
    async findByHash(keyHash) {
      const row = await storage.db
        .selectFrom('api_keys')
        .selectAll()
        .where('key_hash', '=', keyHash)
        .executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    async hasActive(now) {
      const row = await storage.db
        .selectFrom('api_keys')
        .select('id')
        .where('revoked_at', 'is', null)
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },
    async find(tenantId, id) {
      const row = await storage.db
        .selectFrom('api_keys')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    async insert(key) {
      await storage.db
        .insertInto('api_keys')
        .values({
          id: key.id,
          tenant_id: key.tenantId,
          name: key.name,
          key_hash: key.keyHash,
          key_prefix: key.keyPrefix,
          role: key.role,
          scopes: JSON.stringify(key.scopes),
          expires_at: key.expiresAt,
          revoked_at: key.revokedAt,
          last_used_at: key.lastUsedAt,
          created_by: key.createdBy,
          created_at: key.createdAt,
        })
        .execute();
    },
    async revoke(tenantId, id, now) {
      const { numUpdatedRows } = await storage.db
        .updateTable('api_keys')
        .set({ revoked_at: now })
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },
    touch: (id, now) => storage.write([touchKey({ last_used_at: now }, { id })]),
  };
});
