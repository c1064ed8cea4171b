import type { EgressPolicyRow, ProviderBindingRow } from '../../db/tables/access.ts';
import { ModelCallError, type ModelProviders } from '../../providers/models/index.ts';
import type { OpenedProvider, ProviderAccess } from '../../providers/models/provider-access.ts';
import { mayNameSecret, type SecretNameRule } from './secret-names.rules.ts';

export interface ProviderAccessDeps {
  readonly providers: Pick<ModelProviders, 'withCredential'>;
  /** The value of a configuration key now; null: it has none. */
  readonly secret: (key: string) => string | null;
  readonly names: SecretNameRule;
}

/** Bindings and policies of all tenants in memory, since every model call asks. */
export interface TenantAccess extends ProviderAccess {
  replace(bindings: readonly ProviderBindingRow[], policies: readonly EgressPolicyRow[]): void;
  binding(tenantId: string, provider: string): ProviderBindingRow | undefined;
  bindingsOf(tenantId: string): readonly ProviderBindingRow[];
  bind(row: ProviderBindingRow): void;
  unbind(tenantId: string, provider: string): void;
  policy(tenantId: string): EgressPolicyRow | undefined;
  limit(row: EgressPolicyRow): void;
  lift(tenantId: string): void;
}

// No tenant slug has a slash.
const keyOf = (tenantId: string, provider: string): string => `${tenantId}/${provider}`;

export const allowedNames = ({ allowed_providers }: EgressPolicyRow): string[] =>
  JSON.parse(allowed_providers) as string[];

export const createTenantAccess = ({ providers, secret, names }: ProviderAccessDeps): TenantAccess => {
  const bindings = new Map<string, ProviderBindingRow>();
  const policies = new Map<string, { readonly row: EgressPolicyRow; readonly allowed: ReadonlySet<string> }>();

  const allows = (tenantId: string, providerName: string): boolean =>
    policies.size === 0 || policies.get(tenantId)?.allowed.has(providerName) !== false;

  const bound = (tenantId: string, row: ProviderBindingRow): OpenedProvider => {
    const { provider_name: name, api_key_configuration_name: key } = row;
    // Asked again at each use: the prefix may have changed since the binding was saved.
    const apiKey = mayNameSecret(names, tenantId, key) ? secret(key) : null;
    const provider = apiKey === null ? undefined : providers.withCredential(name, { apiKey, endpoint: row.endpoint });
    if (provider === undefined)
      throw new ModelCallError('provider_credential_unresolved', `Provider "${name}" has no usable credential.`, {
        provider: name,
      });
    return { provider, owner: tenantId };
  };

  return {
    allows,
    open(tenantId, provider) {
      if (!allows(tenantId, provider.name))
        throw new ModelCallError('provider_not_allowed', `The tenant may not call the provider "${provider.name}".`, {
          provider: provider.name,
        });
      const row = bindings.size === 0 ? undefined : bindings.get(keyOf(tenantId, provider.name));
      return row === undefined ? { provider, owner: null } : bound(tenantId, row);
    },
    replace(bindingRows, policyRows) {
      bindings.clear();
      policies.clear();
      for (const row of bindingRows) this.bind(row);
      for (const row of policyRows) this.limit(row);
    },
    binding: (tenantId, provider) => bindings.get(keyOf(tenantId, provider)),
    bindingsOf: (tenantId) =>
      [...bindings.values()]
        .filter((row) => row.tenant_id === tenantId)
        .toSorted((a, b) => (a.provider_name < b.provider_name ? -1 : 1)),
    bind: (row) => {
      bindings.set(keyOf(row.tenant_id, row.provider_name), row);
    },
    unbind: (tenantId, provider) => {
      bindings.delete(keyOf(tenantId, provider));
    },
    policy: (tenantId) => policies.get(tenantId)?.row,
    limit: (row) => {
      policies.set(row.tenant_id, { row, allowed: new Set(allowedNames(row)) });
    },
    lift: (tenantId) => {
      policies.delete(tenantId);
    },
  };
};
