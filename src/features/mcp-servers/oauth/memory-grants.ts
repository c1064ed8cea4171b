import { type Consent, type Grant, type GrantKeeper, type GrantOf, oneRenewal } from './grants.ts';

interface Held {
  readonly binding: string;
  readonly grant: Grant;
}

// Those of people who never came back lapse; more than so many at once nobody starts.
const mostConsents = 1000;

/** Grants of this process, which are gone with it. */
export const memoryGrants = (now: () => number): GrantKeeper => {
  const grants = new Map<string, Held>();
  const consents = new Map<string, Consent>();

  const heldNow = ({ serverId, binding }: GrantOf): Grant | null => {
    const held = grants.get(serverId);
    return held?.binding === binding ? held.grant : null;
  };
  const replace = (of: GrantOf, old: Grant, next: Grant | null): Grant | null => {
    // Somebody has forgotten it meanwhile, or authorized the service anew.
    if (heldNow(of) !== old) return heldNow(of);
    if (next === null) grants.delete(of.serverId);
    else grants.set(of.serverId, { binding: of.binding, grant: next });
    return next;
  };

  return {
    held: async (of) => heldNow(of),
    lacks: (of) => heldNow(of) === null,
    async keep({ serverId, binding }, grant) {
      grants.set(serverId, { binding, grant });
    },
    async forget({ serverId }) {
      const held = grants.get(serverId);
      grants.delete(serverId);
      return held?.grant ?? null;
    },
    renew: oneRenewal(async (of, isOld, ask) => {
      const grant = heldNow(of);
      return grant === null || !isOld(grant) ? grant : replace(of, grant, await ask(grant));
    }),
    async offer(stateHash, consent) {
      for (const [hash, { expiresAt }] of consents)
        if (expiresAt <= now() || consents.size >= mostConsents) consents.delete(hash);
      consents.set(stateHash, consent);
    },
    async take(stateHash) {
      const consent = consents.get(stateHash);
      consents.delete(stateHash);
      return consent ?? null;
    },
  };
};
