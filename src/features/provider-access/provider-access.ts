import { mayNameSecret, type SecretNameRule } from '../../core/config/index.ts';
import { type InstanceState, tenantKey } from '../../core/instance-state.ts';
import type { EgressPolicyRow, ProviderBindingRow } from '../../db/tables/access.ts';
import { ModelCallError, type ModelProvider, type ModelProviders } from '../../providers/models/index.ts';
import type { OpenedProvider } from '../../providers/models/provider-access.ts';
import type { ProviderAccessStore } from './provider-access.store.ts';

export interface ProviderAccessDeps {
  readonly state: Pick<InstanceState, 'table'>;
  readonly store: Pick<ProviderAccessStore, 'bindings' | 'policies'>;
  readonly providers: Pick<ModelProviders, 'withCredential'>;
  /** The value of a configuration key now; null: it has none. */
  readonly secret: (key: string) => string | null;
  readonly names: SecretNameRule;
}

export const allowedNames = ({ allowed_providers }: EgressPolicyRow): string[] =>
  JSON.parse(allowed_providers) as string[];

/** A policy, with its names ready to be looked up. */
interface Policy {
  readonly row: EgressPolicyRow;
  readonly allowed: ReadonlySet<string>;
}

const policyOf = (row: EgressPolicyRow): Policy => ({ row, allowed: new Set(allowedNames(row)) });

/** Bindings and policies of all tenants in memory, since every model call asks. */
export const createTenantAccess = (deps: ProviderAccessDeps) => {
  const { state, store, providers, secret, names } = deps;
  const bindings = state.table<ProviderBindingRow>('providerBindings', {
    read: store.bindings,
    keyOf: (row) => tenantKey(row.tenant_id, row.provider_name),
  });
  const policies = state.table<Policy>('egressPolicies', {
    read: async () => (await store.policies()).map(policyOf),
    keyOf: ({ row }) => row.tenant_id,
  });

  const allows = (tenantId: string, providerName: string): boolean =>
    policies.rows.get(tenantId)?.allowed.has(providerName) !== false;

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
    current() {
      const [ofBindings, ofPolicies] = [bindings.current(), policies.current()];
      return ofBindings === null && ofPolicies === null
        ? null
        : Promise.all([ofBindings, ofPolicies]).then(() => undefined);
    },
    /** Before what is told or changed: it is about what anybody has saved by now. */
    refresh: () => Promise.all([bindings.refresh(), policies.refresh()]),
    open(tenantId: string, provider: ModelProvider): OpenedProvider {
      if (!allows(tenantId, provider.name))
        throw new ModelCallError('provider_not_allowed', `The tenant may not call the provider "${provider.name}".`, {
          provider: provider.name,
        });
      const { rows } = bindings;
      const row = rows.size === 0 ? undefined : rows.get(tenantKey(tenantId, provider.name));
      return row === undefined ? { provider, owner: null } : bound(tenantId, row);
    },
    binding: (tenantId: string, provider: string) => bindings.rows.get(tenantKey(tenantId, provider)),
    bindingsOf: (tenantId: string): readonly ProviderBindingRow[] =>
      [...bindings.rows.values()]
        .filter((row) => row.tenant_id === tenantId)
        .toSorted((a, b) => (a.provider_name < b.provider_name ? -1 : 1)),
    bind: bindings.put,
    unbind: (tenantId: string, provider: string) => bindings.drop(tenantKey(tenantId, provider)),
    policy: (tenantId: string) => policies.rows.get(tenantId)?.row,
    limit: (row: EgressPolicyRow) => policies.put(policyOf(row)),
    lift: policies.drop,
  };
};

export type TenantAccess = ReturnType<typeof createTenantAccess>;
