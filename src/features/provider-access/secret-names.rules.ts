/** `Service__A__b` and `service:a:b` are one key. */
const normalized = (key: string): string => key.replaceAll('__', ':').toLowerCase();

export interface SecretNameRule {
  /** Such as `Service:ProviderKeys:`. */
  readonly prefix: string;
  readonly defaultTenantId: string;
}

/** Where the keys of a tenant lie: below the prefix, and for every tenant but the default one in a part of its own. */
export const secretPrefix = ({ prefix, defaultTenantId }: SecretNameRule, tenantId: string): string =>
  tenantId === defaultTenantId ? prefix : `${prefix}${tenantId}:`;

/** Whether a record of the tenant may name this configuration key. */
export const mayNameSecret = (rule: SecretNameRule, tenantId: string, key: string): boolean => {
  const prefix = normalized(secretPrefix(rule, tenantId));
  return normalized(key).startsWith(prefix) && key.length > prefix.length;
};
