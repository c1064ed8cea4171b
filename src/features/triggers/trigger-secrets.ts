import {
  type Config,
  mayNameSecret,
  resolveSecrets,
  type SecretNameRule,
  secretPrefix,
} from '../../core/config/index.ts';
import type { TriggerRow } from '../../db/tables/arriving-work.ts';

/** The secrets that triggers name in the configuration. */
export const createTriggerSecrets = (config: Config) => {
  const { Service, Host } = config;
  const rule: SecretNameRule = {
    prefix: Service.Triggers.AllowedConfigurationPrefix,
    defaultTenantId: Service.DefaultTenantId,
    oneSegment: Host.Tenancy.Enabled,
  };
  const mayName = (tenantId: string, key: string): boolean => mayNameSecret(rule, tenantId, key);
  return {
    mayName,
    prefixOf: (tenantId: string): string => secretPrefix(rule, tenantId),
    /** None where the key has no value now, or the tenant may not name it: the prefix may have changed since it was saved. */
    of: ({ tenant_id, secret_key }: Pick<TriggerRow, 'tenant_id' | 'secret_key'>): readonly string[] =>
      mayName(tenant_id, secret_key) ? resolveSecrets(config, secret_key) : [],
  };
};

export type TriggerSecrets = ReturnType<typeof createTriggerSecrets>;
