import Type, { type Static } from 'typebox';
import { apiKeyScopes, roles } from '../../contract/authority.ts';
import { closed, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

export const ApiKeyCreateRequest = closed(
  {
    name: Type.String({ minLength: 1, maxLength: 128, pattern: '\\S' }),
    scopes: Type.Array(oneOf(apiKeyScopes), { minItems: 1, maxItems: apiKeyScopes.length }),
    role: Type.Optional(nullable(oneOf(roles, { description: 'Default: the lowest role that the scopes can use' }))),
    expiresAt: Type.Optional(nullable(Type.String({ format: 'date-time', description: 'In the future; null: never' }))),
  },
  { title: 'ApiKeyCreateRequest' },
);
export type ApiKeyCreateRequest = Static<typeof ApiKeyCreateRequest>;

export const ApiKeyRecord = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    name: Type.String(),
    keyPrefix: Type.String({ description: 'The first 12 characters' }),
    role: oneOf(roles),
    scopes: Type.Array(oneOf(apiKeyScopes)),
    expiresAt: nullable(Time),
    revokedAt: nullable(Time),
    lastUsedAt: nullable(Time),
    createdBy: nullable(Type.String()),
    createdAt: Time,
    isActive: Type.Boolean(),
  },
  { title: 'ApiKeyRecord' },
);
export type ApiKeyRecord = Static<typeof ApiKeyRecord>;

const WhoamiReasons = Type.Object(
  {
    identity: Type.String({ description: 'What the caller was known by' }),
    role: Type.String({ description: 'Where the role and the scopes come from' }),
    tenant: Type.String({ description: 'Where the tenant comes from' }),
  },
  { title: 'WhoamiReasons', description: 'Where name, role and tenant of the caller come from, a sentence each' },
);
export type WhoamiReasons = Static<typeof WhoamiReasons>;

export const WhoamiResponse = Type.Object(
  {
    method: oneOf(['Anonymous', 'Token', 'ApiKey', 'Oidc', 'Host'], { description: 'How the caller was known' }),
    tenantId: Type.String(),
    role: nullable(oneOf(roles, { description: 'Null: none, and no operation with a role is allowed' })),
    scopes: nullable(Type.Array(oneOf(apiKeyScopes), { description: 'Null: all of them, the role alone limits' })),
    actor: nullable(Type.String({ description: 'Name in the audit trail' })),
    userId: nullable(Type.String({ description: 'Subject of a person' })),
    apiKey: nullable(Type.Object({ id: Uuid, name: Type.String() })),
    reasons: WhoamiReasons,
  },
  { title: 'WhoamiResponse' },
);
export type WhoamiResponse = Static<typeof WhoamiResponse>;

export const ApiKeyCreationResult = Type.Object(
  { record: ApiKeyRecord, plaintextKey: Type.String({ description: 'Shown here and never again' }) },
  { title: 'ApiKeyCreationResult' },
);
