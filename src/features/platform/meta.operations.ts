import { defineOperations } from '../../contract/operation.ts';
import { MetaResponse } from './meta.schema.ts';

export const metaOperations = defineOperations({
  get: {
    tag: 'Platform',
    role: null,
    scope: null,
    method: 'GET',
    path: '/api/meta',
    summary: 'Version, authentication, stores and what the caller may do',
    description:
      'The first call of a client: it needs no credential, and tells which ways of authenticating there are, what the store is and what this caller may do.',
    responses: { 200: MetaResponse },
    errors: [],
    cli: { command: 'meta' },
  },
});
