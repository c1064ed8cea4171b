import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Uuid } from '../../contract/schema.ts';
import { ApiKeyCreateRequest, ApiKeyCreationResult, ApiKeyRecord } from './keys.schema.ts';

export const keyOperations = defineOperations({
  list: {
    tag: 'Security',
    role: 'Reader',
    scope: 'SecurityAdmin',
    method: 'GET',
    path: '/api/api-keys',
    summary: 'List the API keys of the tenant, newest first',
    responses: { 200: Type.Array(ApiKeyRecord) },
    errors: [],
    cli: { columns: ['id', 'name', 'keyPrefix', 'role', 'scopes', 'isActive', 'expiresAt', 'lastUsedAt'] },
  },
  create: {
    tag: 'Security',
    role: 'Admin',
    scope: 'SecurityAdmin',
    method: 'POST',
    path: '/api/api-keys',
    summary: 'Create an API key; the answer shows it once',
    body: ApiKeyCreateRequest,
    responses: { 200: ApiKeyCreationResult },
    errors: ['authority-not-held'],
    audit: 'apikey.create',
    cli: { handWritten: true },
  },
  remove: {
    tag: 'Security',
    role: 'Admin',
    scope: 'SecurityAdmin',
    method: 'DELETE',
    path: '/api/api-keys/{id}',
    summary: 'Revoke an API key',
    params: Type.Object({ id: Uuid }),
    responses: { 204: null },
    errors: ['not-found'],
    audit: 'apikey.revoke',
    cli: { command: 'keys revoke', done: 'Revoked API key {id}.' },
  },
});
