import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { AuditChainVerification, AuditRecord } from './audit.schema.ts';

const read = { tag: 'Audit', role: 'Reader', scope: 'AuditRead', method: 'GET' } as const;
const moment = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }));
const limit = Type.Optional(Type.Integer({ description: 'Entries to return, default 100, clamped to 1..500' }));
const range = { after: moment('Inclusive'), before: moment('Exclusive') };
const columns = ['id', 'createdAt', 'actor', 'action', 'entity'];

export const auditOperations = defineOperations({
  list: {
    ...read,
    path: '/api/audit',
    summary: 'List entries of the audit trail, newest first',
    description:
      'Each change to an object that governs the service is an entry with actor, action, entity, and the states before and after. `beforeId` gives the next page.',
    query: Type.Object({
      actor: Type.Optional(Type.String({ description: 'Exact match' })),
      action: Type.Optional(Type.String({ description: 'Exact match' })),
      entity: Type.Optional(Type.String({ description: 'Exact match, `<type>:<id>`' })),
      ...range,
      beforeId: Type.Optional(
        Type.String({ format: 'uuid', description: 'Continues a list: only entries older than this one' }),
      ),
      limit,
    }),
    responses: { 200: Type.Array(AuditRecord) },
    errors: [],
    cli: { columns },
  },
  get: {
    ...read,
    path: '/api/audit/{entity}',
    summary: 'List the entries of one entity, newest first',
    description:
      'The entity is written as in the entries, such as `agent:support` or `quota:…`. Entries of deleted entities are included.',
    params: Type.Object({ entity: Type.String({ description: 'Complete key, `<type>:<id>`', pattern: ':' }) }),
    query: Type.Object({ limit }),
    responses: { 200: Type.Array(AuditRecord) },
    errors: [],
    cli: { command: 'audit show', columns },
  },
  verify: {
    ...read,
    path: '/api/audit/verify',
    summary: 'Verify the chain of the audit trail, or a part of it',
    description:
      'Each entry holds the hash of the previous one, which reveals changed and missing entries. The response names the first entry at which the chain breaks.',
    query: Type.Object(range),
    responses: { 200: AuditChainVerification },
    errors: [],
    cli: { handWritten: true },
  },
  export: {
    ...read,
    path: '/api/audit/export',
    summary: 'Export the audit trail, or a part of it, as a signed file that can be verified without the service',
    description:
      'The file has one entry per line, the chain of hashes and a signature over it; `acp audit verify FILE` verifies it on any machine. The response is streamed.',
    query: Type.Object(range),
    download: 'JSON Lines: a header, the entries oldest first, and an end with an Ed25519 signature',
    responses: {},
    errors: ['persistent-store-required', 'audit-unavailable'],
    cli: { handWritten: true },
  },
});
