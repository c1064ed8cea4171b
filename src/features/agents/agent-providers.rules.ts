import type { AgentContent } from './agents.content.ts';
import { error, type Finding, quoted } from './agents.findings.ts';

/** What a tenant's egress policy says of a provider. */
export type AllowsProvider = (tenantId: string, providerName: string) => boolean;

const notAllowed = (path: string, provider: string): Finding =>
  error('provider-not-allowed', `${path}.provider`, `The tenant may not call the provider ${quoted(provider)}.`);

/** Providers that the definition names and the tenant's egress policy excludes. */
export const allowedProviderFindings = (
  tenantId: string,
  { model }: Pick<AgentContent, 'model'>,
  allows: AllowsProvider,
): Finding[] => [
  ...(allows(tenantId, model.provider) ? [] : [notAllowed('model', model.provider)]),
  ...model.fallbacks.flatMap(({ provider }, index) =>
    allows(tenantId, provider) ? [] : [notAllowed(`model.fallbacks[${index}]`, provider)],
  ),
];

/** Of a definition that was saved before the policy: an excluded fallback is only skipped when it would be called. */
export const boundProviderFindings = (tenantId: string, provider: string, allows: AllowsProvider): Finding[] =>
  allows(tenantId, provider) ? [] : [notAllowed('model', provider)];
