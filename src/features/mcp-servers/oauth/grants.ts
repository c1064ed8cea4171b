import type { AuthorizationServer } from '../../../providers/mcp/oauth/metadata.ts';
import type { OAuthClient } from '../../../providers/mcp/oauth/oauth-client.ts';

/**
 * What a person has granted this service at a server. The client and the tokens are for its issuer and for no other.
 * Design: docs/design/mcp-oauth.md.
 */
export interface Grant {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint: string | null;
  readonly resource: string;
  readonly client: OAuthClient;
  readonly accessToken: string;
  readonly refreshToken: string | null;
  readonly receivedAt: number;
  /** Null: its issuer did not say. */
  readonly expiresAt: number | null;
}

/** What waits for a person to come back from the authorization server. */
export interface Consent {
  readonly tenantId: string;
  readonly serverId: string;
  readonly binding: string;
  /** Who has started it. */
  readonly actor: string | null;
  readonly server: AuthorizationServer;
  readonly client: OAuthClient;
  readonly resource: string;
  readonly redirectUri: string;
  readonly verifier: string;
  readonly expiresAt: number;
}

/** A server, and what of its record a grant was given for. */
export interface GrantOf {
  readonly tenantId: string;
  readonly serverId: string;
  readonly binding: string;
}

/** Where grants and consents are kept. */
export interface GrantKeeper {
  /** Null: none is held, or it was given for something else. */
  held(of: GrantOf): Promise<Grant | null>;
  /** True: it is certain, without a look into the store, that none is held. */
  lacks(of: GrantOf): boolean;
  keep(of: GrantOf, grant: Grant): Promise<void>;
  /** Whatever it was given for; what was held. */
  forget(of: Pick<GrantOf, 'tenantId' | 'serverId'>): Promise<Grant | null>;
  /**
   * Replaces a grant that `isOld`, once however many ask for it at a time, with what `ask` gives; null ends it. The grant that
   * is held then. Rejects as `ask` does, and the grant stays.
   */
  renew(
    of: GrantOf,
    isOld: (grant: Grant) => boolean,
    ask: (grant: Grant) => Promise<Grant | null>,
  ): Promise<Grant | null>;
  offer(stateHash: string, consent: Consent): Promise<void>;
  /** A consent is taken once. Null: there is none of this hash. */
  take(stateHash: string): Promise<Consent | null>;
}

/** Of one server a grant is renewed once at a time in this process: whoever comes meanwhile gets what that gives. */
export const oneRenewal = (renew: GrantKeeper['renew']): GrantKeeper['renew'] => {
  const underWay = new Map<string, Promise<Grant | null>>();
  return (of, isOld, ask) => {
    const other = underWay.get(of.serverId);
    if (other !== undefined) return other;
    const renewal = renew(of, isOld, ask).finally(() => underWay.delete(of.serverId));
    underWay.set(of.serverId, renewal);
    return renewal;
  };
};
