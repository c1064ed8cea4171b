import { parseSecretKey } from './secret-name.ts';

export interface SecretNameRule {
  /** Such as `Service:ProviderKeys:`. */
  readonly prefix: string;
  readonly defaultTenantId: string;
  /** A key of the default tenant has no colon below the prefix: what has one is another tenant's. */
  readonly oneSegment?: boolean;
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
  if (named?.startsWith(own) !== true || named.length === own.length) return false;
  return rule.oneSegment !== true || tenantId !== rule.defaultTenantId || !named.slice(own.length).includes(':');
};
