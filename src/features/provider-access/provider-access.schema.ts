import Type, { type Static } from 'typebox';
import { closed, Labels, nullable, Time, tenantPattern } from '../../contract/schema.ts';

export const TenantId = Type.Object({ tenantId: Type.String({ pattern: tenantPattern }) });

export const TenantProvider = Type.Object({
  tenantId: Type.String({ pattern: tenantPattern }),
  provider: Type.String({ minLength: 1, maxLength: 128 }),
});

export const TenantProviderBindingRequest = closed(
  {
    apiKeyConfigurationName: Type.String({
      minLength: 1,
      maxLength: 512,
      description: 'Name of a configuration key below `TenantProviders:AllowedConfigurationPrefix`; never a key itself',
    }),
    endpoint: Type.Optional(
      nullable(Type.String({ maxLength: 2048 }), { description: "Absolute https URL; null: the provider's own" }),
    ),
  },
  { title: 'TenantProviderBindingRequest' },
);

export const TenantProviderBindingResponse = Type.Object(
  {
    providerName: Type.String(),
    apiKeyConfigurationName: Type.String(),
    endpoint: nullable(Type.String()),
    resolved: Type.Boolean({ description: 'Whether the key has a value now' }),
    updatedAt: Time,
  },
  { title: 'TenantProviderBindingResponse' },
);
export type TenantProviderBindingResponse = Static<typeof TenantProviderBindingResponse>;

export const TenantEgressPolicyRequest = closed(
  {
    allowedProviders: Type.Array(Type.String({ maxLength: 128 }), {
      maxItems: 100,
      description: 'Names of providers; an empty list allows none',
    }),
    labels: Type.Optional(Labels),
  },
  { title: 'TenantEgressPolicyRequest' },
);

export const TenantEgressPolicyResponse = Type.Object(
  {
    tenantId: Type.String(),
    allowedProviders: nullable(Type.Array(Type.String()), { description: 'Null: no policy, every provider' }),
    labels: Labels,
    updatedAt: nullable(Time),
  },
  { title: 'TenantEgressPolicyResponse' },
);
export type TenantEgressPolicyResponse = Static<typeof TenantEgressPolicyResponse>;
