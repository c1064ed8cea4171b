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
      'Keys are shown by their prefix, role, scopes and times, never whole. Revoked and expired ones stay in the list.',
    responses: { 200: Type.Array(ApiKeyRecord) },
    errors: [],
    cli: { columns: ['id', 'name', 'keyPrefix', 'role', 'scopes', 'isActive', 'expiresAt', 'lastUsedAt'] },
  },
  create: {
    ...manage,
    method: 'POST',
    path: '/api/api-keys',
    summary: 'Create an API key; the answer shows it once',
    description:
      'Role and scopes cannot exceed those of the caller. The service cannot show a key again, so one that is lost has to be replaced.',
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
      'The key is refused from the next request on. Its record stays, so that audit entries can be traced to it.',
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
    summary: 'Who the caller is, with which authority, and why',
    description:
      'Answers every caller that the service accepts, also one whose token gives no role: what it presented, the tenant, the role and scopes that follow, and the setting or claim that decided it.',
    responses: { 200: WhoamiResponse },
    errors: [],
  },
});
