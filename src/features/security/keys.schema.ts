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
    identity: Type.String({ description: "Source of the caller's identity" }),
    role: Type.String({ description: 'Source of the role and the scopes' }),
    tenant: Type.String({ description: 'Source of the tenant' }),
  },
  { title: 'WhoamiReasons', description: 'Sources of the identity, role and tenant of the caller, one sentence each' },
);
export type WhoamiReasons = Static<typeof WhoamiReasons>;

export const WhoamiResponse = Type.Object(
  {
    method: oneOf(['Anonymous', 'Token', 'ApiKey', 'Oidc', 'Host'], {
      description: 'Method that identified the caller',
    }),
    tenantId: Type.String(),
    role: nullable(oneOf(roles, { description: 'Null: no role; operations that need a role are not allowed' })),
    scopes: nullable(Type.Array(oneOf(apiKeyScopes), { description: 'Null: all scopes; only the role limits access' })),
    actor: nullable(Type.String({ description: 'Name in the audit trail' })),
    userId: nullable(Type.String({ description: 'Subject of a person' })),
    apiKey: nullable(Type.Object({ id: Uuid, name: Type.String() })),
    reasons: WhoamiReasons,
  },
  { title: 'WhoamiResponse' },
);
export type WhoamiResponse = Static<typeof WhoamiResponse>;

export const ApiKeyCreationResult = Type.Object(
  { record: ApiKeyRecord, plaintextKey: Type.String({ description: 'Shown only in this response' }) },
  { title: 'ApiKeyCreationResult' },
);
