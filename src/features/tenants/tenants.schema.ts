import Type, { type Static } from 'typebox';
import { closed, nullable, Time, tenantPattern, Uuid } from '../../contract/schema.ts';

export const TenantSlug = Type.Object({ slug: Type.String({ pattern: tenantPattern }) });

export const TenantRequest = closed(
  {
    displayName: Type.Optional(nullable(Type.String({ maxLength: 256, description: 'Display name; blank: the slug' }))),
  },
  { title: 'TenantRequest' },
);
export type TenantRequest = Static<typeof TenantRequest>;

export const TenantDescriptor = Type.Object(
  { id: Uuid, slug: Type.String(), displayName: Type.String(), createdAt: Time },
  { title: 'TenantDescriptor' },
);
export type TenantDescriptor = Static<typeof TenantDescriptor>;

export const CurrentTenantResponse = Type.Object({ tenantId: Type.String() }, { title: 'CurrentTenantResponse' });
