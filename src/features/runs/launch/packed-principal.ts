import type { Principal } from '../../../core/context.ts';

/** A principal as it is stored for a run that executes later. */
export type PackedPrincipal = Omit<Principal, 'scopes' | 'permissions'> & {
  readonly scopes: readonly string[] | null;
  readonly permissions: readonly string[] | null;
};

export const packPrincipal = (principal: Principal): PackedPrincipal => ({
  ...principal,
  scopes: principal.scopes === null ? null : [...principal.scopes],
  permissions: principal.permissions === null ? null : [...principal.permissions],
});

export const unpackPrincipal = (packed: PackedPrincipal): Principal => ({
  ...packed,
  scopes: packed.scopes === null ? null : (new Set(packed.scopes) as NonNullable<Principal['scopes']>),
  permissions: packed.permissions === null ? null : new Set(packed.permissions),
});
