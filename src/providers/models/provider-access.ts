import type { ModelProvider } from './model-provider.ts';

/** A provider as one tenant may call it. */
export interface OpenedProvider {
  readonly provider: ModelProvider;
  /** The tenant whose own credential is used; null: the global one. */
  readonly owner: string | null;
}

/** What tenants may call, and with whose credential; asked for every model call. */
export interface ProviderAccess {
  /** False: the tenant's egress policy excludes the provider. */
  allows(tenantId: string, providerName: string): boolean;
  /** Throws ModelCallError: `provider_not_allowed`, or `provider_credential_unresolved` for a binding without a value. */
  open(tenantId: string, provider: ModelProvider): OpenedProvider;
  /** Null: `open` can be asked now. Else once it has resolved; it rejects while the store cannot say who may call what. */
  current(): Promise<void> | null;
}

/** Every tenant calls every provider with the global credential. */
export const openAccess: ProviderAccess = {
  allows: () => true,
  open: (_tenantId, provider) => ({ provider, owner: null }),
  current: () => null,
};
