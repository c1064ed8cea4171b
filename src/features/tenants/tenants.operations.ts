import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { CurrentTenantResponse, TenantDescriptor, TenantRequest, TenantSlug } from './tenants.schema.ts';

const columns = ['slug', 'displayName', 'createdAt'];

const read = { tag: 'Tenants', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Tenants', role: 'Admin', scope: 'PlatformAdmin' } as const;

export const tenantOperations = defineOperations({
  current: {
    ...read,
    path: '/api/tenants/current',
    summary: 'Show the tenant of this request',
    description: 'The tenant comes from the credential, or from a header where the host allows it.',
    responses: { 200: CurrentTenantResponse },
    errors: [],
  },
  list: {
    ...read,
    path: '/api/tenants',
    summary: "List tenant records by slug; outside the default tenant only the caller's own",
    description: 'A record gives a tenant a display name. Tenants without a record work as well, but are not listed.',
    responses: { 200: Type.Array(TenantDescriptor) },
    errors: [],
    cli: { columns },
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/tenants/{slug}',
    summary: 'Create or rename the record of a tenant',
    description: 'The slug is the id that credentials and headers name. Saving it again changes the display name only.',
    params: TenantSlug,
    body: TenantRequest,
    responses: { 200: TenantDescriptor },
    errors: ['not-found'],
    audit: { action: 'tenant.save', entity: 'tenant', mode: 'noted' },
    cli: { command: 'tenants set', columns },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/tenants/{slug}',
    summary: 'Delete the record of a tenant, but none of its data',
    description: 'Agents, runs and keys of the tenant remain and work under its slug.',
    params: TenantSlug,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'tenant.delete', entity: 'tenant', mode: 'noted' },
    cli: { command: 'tenants delete', done: 'Deleted the record of tenant {slug}.' },
  },
});
