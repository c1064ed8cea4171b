import Type, { type Static } from 'typebox';
import { nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

const Hash = Type.String({ description: 'SHA-256 in lower-case hex' });

export const AuditRecord = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    actor: nullable(Type.String(), { description: 'Null: nobody in particular' }),
    action: Type.String({ description: 'Such as `agent.update`' }),
    entity: Type.String({ description: '`<type>:<id>`' }),
    before: nullable(Type.String({ description: 'JSON text, secrets masked; null: it did not exist' })),
    after: nullable(Type.String({ description: 'JSON text, secrets masked; null: it is gone' })),
    createdAt: Time,
    previousHash: nullable(Hash, { description: 'Hash of the entry before; null: the first of the tenant' }),
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
      description: 'Broken: an entry does not have its hash; Gap: entries are missing or in the wrong place',
    }),
    entriesChecked: Type.Integer({ minimum: 0, description: 'Up to and with the one where the fault shows' }),
    firstFailingEntryId: nullable(Uuid, { description: 'Null when Valid, and when no entry is left' }),
  },
  { title: 'AuditChainVerification' },
);
export type AuditChainVerification = Static<typeof AuditChainVerification>;
