import { type Config, resolveSecret } from '../../core/config/index.ts';
import type { InstanceState } from '../../core/instance-state.ts';
import type { Storage } from '../../db/storage.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import type { AuditLog } from '../audit/index.ts';
import { egressPolicyService, providerBindingService } from './provider-access.service.ts';
import { providerAccessStore } from './provider-access.store.ts';
import { createTenantAccess } from './provider-access.ts';

export interface ProviderAccessFeatureDeps {
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'table'>;
  readonly config: Config;
  readonly providers: ModelProviders;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  /** Counts an address that the rules refuse. */
  readonly egressRefused: (client: 'provider', phase: 'save') => void;
  readonly now: () => number;
}

/** Which providers tenants may call, and with whose credential. */
export const providerAccessFeature = ({
  storage,
  state,
  config,
  providers,
  audit,
  egressRefused,
  now,
}: ProviderAccessFeatureDeps) => {
  const { Service } = config;
  const names = {
    prefix: Service.TenantProviders.AllowedConfigurationPrefix,
    defaultTenantId: Service.DefaultTenantId,
  };
  const secret = (key: string): string | null => resolveSecret(config, key);
  const store = storage.stores(providerAccessStore);
  const access = createTenantAccess({ state, store, providers, secret, names });
  const deps = {
    store,
    access,
    providers,
    secret,
    names,
    allowPrivateEndpoints: Service.Egress.AllowPrivateNetworkTargets,
    endpointRefused: () => egressRefused('provider', 'save'),
    audit,
    now,
  };
  return {
    bindings: providerBindingService(deps),
    policies: egressPolicyService(deps),
    access,
  };
};
