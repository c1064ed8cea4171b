export interface ApiKeyRow {
  id: string;
  tenant_id: string;
  name: string;
  key_hash: string;
  key_prefix: string;
  role: string;
  scopes: string;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  created_by: string | null;
  created_at: number;
}

/** A label; a tenant without one works the same. */
export interface TenantRow {
  slug: string;
  id: string;
  display_name: string;
  created_at: number;
}

export interface AccessTables {
  api_keys: ApiKeyRow;
  tenants: TenantRow;
}

export const accessTableNames = ['api_keys', 'tenants'] as const satisfies readonly (keyof AccessTables)[];
