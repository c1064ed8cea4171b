import Type, { type Static } from 'typebox';
import { nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

const Hash = Type.String({ description: 'SHA-256 in lower-case hex' });

export const AuditRecord = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    actor: nullable(Type.String(), { description: 'Null: no particular person or program' }),
    action: Type.String({ description: 'Such as `agent.update`' }),
    entity: Type.String({ description: '`<type>:<id>`' }),
    before: nullable(Type.String({ description: 'JSON text, secrets masked; null: it did not exist' })),
    after: nullable(Type.String({ description: 'JSON text, secrets masked; null: it no longer exists' })),
    createdAt: Time,
    previousHash: nullable(Hash, { description: 'Hash of the previous entry; null: the first entry of the tenant' }),
    hash: Hash,
  },
  { title: 'AuditEntry' },
);
export type AuditRecord = Static<typeof AuditRecord>;

export const chainStatuses = ['Valid', 'Broken', 'Gap'] as const;
export type ChainStatus = (typeof chainStatuses)[number];

export const AuditChainVerification = Type.Object(
  {
    status: oneOf(chainStatuses, {
      description: 'Broken: the hash of an entry does not match; Gap: entries are missing or out of order',
    }),
    entriesChecked: Type.Integer({
      minimum: 0,
      description: 'Number of entries up to and including the one with the fault',
    }),
    firstFailingEntryId: nullable(Uuid, { description: 'Null when Valid, and when no entry is left' }),
  },
  { title: 'AuditChainVerification' },
);
export type AuditChainVerification = Static<typeof AuditChainVerification>;
