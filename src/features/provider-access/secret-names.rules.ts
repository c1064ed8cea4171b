import { parseSecretKey } from '../../core/config/index.ts';

export interface SecretNameRule {
  /** Such as `Service:ProviderKeys:`. */
  readonly prefix: string;
  readonly defaultTenantId: string;
}

/** Where the keys of a tenant lie: below the prefix, and for every tenant but the default one in a part of its own. */
export const secretPrefix = ({ prefix, defaultTenantId }: SecretNameRule, tenantId: string): string =>
  tenantId === defaultTenantId ? prefix : `${prefix}${tenantId}:`;

/** In one spelling, as far as keys ignore case; what lies below a section stays as written, since tenants do not. */
const spelled = (key: string): string | null => {
  const named = parseSecretKey(key);
  return named === null ? null : `Service:${named.section}:${named.name}`;
};

/** Whether a record of the tenant may name this configuration key. The tenant's part has to be its id to the letter. */
export const mayNameSecret = (rule: SecretNameRule, tenantId: string, key: string): boolean => {
  const prefix = secretPrefix(rule, tenantId);
  const own = spelled(prefix) ?? prefix;
  const named = spelled(key);
  return named?.startsWith(own) === true && named.length > own.length;
};
