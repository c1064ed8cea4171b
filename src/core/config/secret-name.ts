/** Sections whose names records may hold. */
const secretSections = ['WebhookSecrets', 'TriggerSecrets', 'ProviderKeys', 'McpSecrets'] as const;

export type SecretSectionName = (typeof secretSections)[number];

export interface SecretKey {
  readonly section: SecretSectionName;
  /** Below the section: `{name}` or `{tenant}:{name}`, as written. */
  readonly name: string;
}

const keyForm = /^service(?::|__)([a-z]+)(?:(?::|__)(.*))?$/is;

/**
 * `Service__ProviderKeys__blue__a` and `service:providerkeys:blue:a` are the same key. Where colons divide what lies
 * below the section, `__` is a part of a name: the tenants `a` and `a__b` have nothing in common. Null: not below one of
 * the secret sections.
 */
export const parseSecretKey = (key: string): SecretKey | null => {
  const [, written = '', below = ''] = keyForm.exec(key) ?? [];
  const section = secretSections.find((name) => name.toLowerCase() === written.toLowerCase());
  if (section === undefined) return null;
  return { section, name: below.includes(':') ? below : below.replaceAll('__', ':') };
};

/**
 * What tells secrets of one section apart. The name ignores case as all keys do; what stands before it is a tenant, and
 * `BLUE` is another tenant than `blue`.
 */
export const secretId = (name: string): string => {
  const at = name.lastIndexOf(':') + 1;
  return name.slice(0, at) + name.slice(at).toLowerCase();
};
