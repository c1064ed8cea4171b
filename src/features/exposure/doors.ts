import { createHash } from 'node:crypto';
import type { CallContext, Door, Principal } from '../../core/context.ts';

/** One credential, told from every other: a person, a key, or what has no identity beyond its kind. */
const credentialOf = ({ kind, userId, apiKey, actor }: Principal): readonly (string | null)[] =>
  apiKey === null ? [kind, userId, userId === null ? actor : null] : ['ApiKey', apiKey.id];

// 128 bits: no two credentials meet, and a row says nothing about a person.
const keyLength = 22;

/** The caller of a protocol, as what it starts and opens remembers it. */
export const doorOf = (source: string, tenantId: string, principal: Principal): Door => {
  const credential = JSON.stringify([tenantId, ...credentialOf(principal)]);
  const digest = createHash('sha256').update(credential).digest('base64url').slice(0, keyLength);
  return { source, key: `${source}:${digest}` };
};

/** The same call, as one that has come through the door of a protocol. */
export const throughDoor = <C extends CallContext>(source: string, context: C): C & { readonly door: Door } => {
  const door = doorOf(source, context.tenantId, context.principal);
  return { ...context, principal: { ...context.principal, door }, door };
};
