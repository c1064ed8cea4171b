import { defineOperations } from '../../contract/operation.ts';
import { MetaResponse } from './meta.schema.ts';

export const metaOperations = defineOperations({
  get: {
    tag: 'Platform',
    role: null,
    scope: null,
    method: 'GET',
    path: '/api/meta',
    summary: 'Show version, authentication, stores and the permissions of the caller',
    description:
      'Intended as the first call of a client: it needs no credential, and shows the available authentication methods, the kind of store and the permissions of this caller.',
    responses: { 200: MetaResponse },
    errors: [],
    cli: { command: 'meta' },
  },
});
