/** Sections whose names records may hold. */
const SECTIONS = ['WebhookSecrets', 'TriggerSecrets', 'ProviderKeys', 'McpSecrets'] as const;

export type SecretSectionName = (typeof SECTIONS)[number];

export interface SecretKey {
  readonly section: SecretSectionName;
  /** Below the section: `{name}` or `{tenant}:{name}`, as written. */
  readonly name: string;
}

const KEY = /^service(?::|__)([a-z]+)(?:(?::|__)(.*))?$/is;

/**
 * `Service__ProviderKeys__blue__a` and `service:providerkeys:blue:a` are the same key. Where colons divide what lies
 * below the section, `__` is a part of a name: the tenants `a` and `a__b` have nothing in common. Null: not below one of
 * the secret sections.
 */
export function parseSecretKey(key: string): SecretKey | null {
  const [, written = '', below = ''] = KEY.exec(key) ?? [];
  const section = SECTIONS.find((name) => name.toLowerCase() === written.toLowerCase());
  if (section === undefined) {
    return null;
  }
  return { section, name: below.includes(':') ? below : below.replaceAll('__', ':') };
}

/**
 * What tells secrets of one section apart. The name ignores case as all keys do; what stands before it is a tenant, and
 * `BLUE` is another tenant than `blue`.
 */
export function secretId(name: string): string {
  const at = name.lastIndexOf(':') + 1;
  return name.slice(0, at) + name.slice(at).toLowerCase();
}
