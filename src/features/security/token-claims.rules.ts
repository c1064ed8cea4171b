import { type Role, roles } from '../../contract/authority.ts';
import { AcpError } from '../../contract/errors.ts';
import { tenantPattern } from '../../contract/schema.ts';

/** The claims of a token whose signature, issuer, audience and times are good. */
export type TokenClaims = Readonly<Record<string, unknown>>;

const slug = new RegExp(tenantPattern);
// As the subject of OpenID Connect; longer names would only fill the tables that hold them.
const maxNameLength = 255;

/** Names that the service gives its own actors: an account called so must not pass for one of them. */
const reserved = /^(?:token$|apikey:|system:)/i;

const nameIn = (claims: TokenClaims, claim: string): string | null => {
  const value = claims[claim];
  if (typeof value !== 'string' || value.trim() === '' || value.length > maxNameLength) return null;
  return reserved.test(value) ? null : value;
};

/** The subject of the token; null when it has none that can stand for a person. */
export const subjectIn = (claims: TokenClaims): string | null => nameIn(claims, 'sub');

const usualActorClaims = [
  'nameid',
  'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier',
  'name',
  'sub',
];

/** Who stands in the audit trail: the configured claim, else the first of the usual ones that names somebody. */
export const actorIn = (claims: TokenClaims, actorClaim: string | null): string | null => {
  for (const claim of actorClaim === null ? usualActorClaims : [actorClaim]) {
    const name = nameIn(claims, claim);
    if (name !== null) return name;
  }
  return null;
};

const textsIn = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((item): item is string => typeof item === 'string');

/** The highest role that the claim has, as text or a list, in any case; null without one. */
export const roleIn = (claims: TokenClaims, claim: string): Role | null => {
  const names = new Set(textsIn(claims[claim]).map((text) => text.toLowerCase()));
  return roles.findLast((role) => names.has(role.toLowerCase())) ?? null;
};

/** Null when the claim is not there; throws `invalid-tenant` when it is and names no tenant. */
export const tenantIn = (claims: TokenClaims, claim: string | null): string | null => {
  const value = claim === null ? null : (claims[claim] ?? null);
  if (value === null || (typeof value === 'string' && slug.test(value))) return value;
  throw new AcpError('invalid-tenant', `The claim ${claim} of the token does not name a tenant.`);
};

/** What tools may require: the entries of `permissions`, a list or text, and the words of `scope`. */
export const permissionsIn = (claims: TokenClaims): ReadonlySet<string> => {
  const scope = textsIn(claims['scope']).flatMap((text) => text.split(' '));
  return new Set([...textsIn(claims['permissions']), ...scope].filter((text) => text !== ''));
};
