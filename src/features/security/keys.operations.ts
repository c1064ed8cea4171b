import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Uuid } from '../../contract/schema.ts';
import { ApiKeyCreateRequest, ApiKeyCreationResult, ApiKeyRecord, WhoamiResponse } from './keys.schema.ts';

const manage = { tag: 'Security', role: 'Admin', scope: 'SecurityAdmin' } as const;

export const keyOperations = defineOperations({
  list: {
    tag: 'Security',
    role: 'Reader',
    scope: 'SecurityAdmin',
    method: 'GET',
    path: '/api/api-keys',
    summary: 'List the API keys of the tenant, newest first',
    description:
      'Entries show prefix, role, scopes and times of a key, never the key itself. Revoked and expired keys remain in the list.',
    responses: { 200: Type.Array(ApiKeyRecord) },
    errors: [],
    cli: { columns: ['id', 'name', 'keyPrefix', 'role', 'scopes', 'isActive', 'expiresAt', 'lastUsedAt'] },
  },
  create: {
    ...manage,
    method: 'POST',
    path: '/api/api-keys',
    summary: 'Create an API key; only this response shows it',
    description:
      'Role and scopes cannot exceed those of the caller. The service cannot show a key again, so a lost key has to be replaced.',
    body: ApiKeyCreateRequest,
    responses: { 200: ApiKeyCreationResult },
    errors: ['authority-not-held'],
    audit: { action: 'apikey.create', entity: 'apikey', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
  remove: {
    ...manage,
    method: 'DELETE',
    path: '/api/api-keys/{id}',
    summary: 'Revoke an API key',
    description:
      'The key is rejected from the next request on. Its record remains, so audit entries can be traced to it.',
    params: Type.Object({ id: Uuid }),
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'apikey.revoke', entity: 'apikey', mode: 'fail-closed' },
    cli: { command: 'keys revoke', done: 'Revoked API key {id}.' },
  },
  whoami: {
    tag: 'Security',
    role: null,
    scope: null,
    anyCaller: true,
    method: 'GET',
    path: '/api/whoami',
    summary: 'Show the identity and authority of the caller, and the reasons',
    description:
      'Available to every caller that the service accepts, even with a token that grants no role. Shows the credential, the tenant, the role and scopes, and the setting or claim that determined them.',
    responses: { 200: WhoamiResponse },
    errors: [],
  },
});
