import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
import {
  TenantEgressPolicyRequest,
  TenantEgressPolicyResponse,
  TenantId,
  TenantProvider,
  TenantProviderBindingRequest,
  TenantProviderBindingResponse,
} from './provider-access.schema.ts';

const read = { tag: 'Tenants', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Tenants', role: 'Admin', scope: 'PlatformAdmin' } as const;
const columns = ['providerName', 'apiKeyConfigurationName', 'endpoint', 'resolved', 'updatedAt'];

export const providerBindingOperations = defineOperations({
  list: {
    ...read,
    path: '/api/tenants/{tenantId}/providers',
    summary: 'List the credentials that a tenant has bound to providers, by provider',
    description: 'Credentials themselves are never shown: a binding names the configuration key that holds one.',
    params: TenantId,
    responses: { 200: Type.Array(TenantProviderBindingResponse) },
    errors: ['not-found'],
    cli: { command: 'tenants providers', columns },
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/tenants/{tenantId}/providers/{provider}',
    summary: 'Let a tenant call a provider with its own credential and endpoint',
    description:
      "The body names a configuration key below the tenant's own prefix; the credential itself is never sent. New calls of the tenant use it.",
    params: TenantProvider,
    body: TenantProviderBindingRequest,
    responses: { 200: TenantProviderBindingResponse },
    errors: ['not-found', 'configuration-key-not-allowed', 'provider-not-allowed', 'target-not-allowed'],
    audit: { action: 'provider-binding.save', entity: 'provider-binding', mode: 'fail-closed' },
    cli: { command: 'tenants bind-provider', columns },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/tenants/{tenantId}/providers/{provider}',
    summary: 'Return to the credential that all tenants share',
    description: "The tenant's calls use the credential and endpoint of the configuration again.",
    params: TenantProvider,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'provider-binding.delete', entity: 'provider-binding', mode: 'fail-closed' },
    cli: {
      command: 'tenants unbind-provider',
      done: 'Removed the binding of tenant {tenantId} to provider {provider}.',
    },
  },
});

export const egressPolicyOperations = defineOperations({
  get: {
    ...read,
    path: '/api/tenants/{tenantId}/egress',
    summary: 'Show which providers a tenant may call',
    description: 'A tenant without a policy may call every provider that is registered.',
    params: TenantId,
    responses: { 200: TenantEgressPolicyResponse },
    errors: ['not-found'],
    cli: { command: 'tenants egress' },
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/tenants/{tenantId}/egress',
    summary: 'Limit the providers that a tenant may call',
    description: 'The list is an allowlist: a provider that it does not name is rejected in definitions and in runs.',
    params: TenantId,
    query: SaveQuery,
    body: TenantEgressPolicyRequest,
    responses: { 200: TenantEgressPolicyResponse },
    errors: ['not-found', 'version-conflict'],
    audit: { action: 'egress-policy.save', entity: 'egress-policy', mode: 'fail-closed' },
    cli: { command: 'tenants set-egress' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/tenants/{tenantId}/egress',
    summary: 'Let a tenant call every provider again',
    description: 'Agents that were rejected because of their provider compile again from the next run on.',
    params: TenantId,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'egress-policy.delete', entity: 'egress-policy', mode: 'fail-closed' },
    cli: { command: 'tenants lift-egress', done: 'Lifted the egress policy of tenant {tenantId}.' },
  },
});
