import { tableOf } from './table-of.ts';

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

/** A credential, and where wanted an endpoint, that a tenant uses for a provider instead of the global one. */
export interface ProviderBindingRow {
  tenant_id: string;
  provider_name: string;
  /** Name of a configuration key. */
  api_key_configuration_name: string;
  endpoint: string | null;
  updated_at: number;
}

export interface EgressPolicyRow {
  tenant_id: string;
  /** JSON list of provider names. */
  allowed_providers: string;
  /** JSON; null without any. */
  labels: string | null;
  updated_at: number;
}

export const accessTables = {
  api_keys: tableOf<ApiKeyRow>(),
  tenants: tableOf<TenantRow>(),
  tenant_provider_bindings: tableOf<ProviderBindingRow>(),
  tenant_egress_policies: tableOf<EgressPolicyRow>(),
};
