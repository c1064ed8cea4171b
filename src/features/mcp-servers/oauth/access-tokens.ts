import type { Logger } from '../../../core/logger.ts';
import { McpFailure } from '../../../providers/mcp/mcp-failure.ts';
import { bearerChallenge } from '../../../providers/mcp/oauth/challenge.ts';
import { endsGrant, OAuthFailure } from '../../../providers/mcp/oauth/oauth-failure.ts';
import type { OpenOAuthWeb } from '../../../providers/mcp/oauth/oauth-web.ts';
import {
  askForTokens,
  type GivenTokens,
  revokeToken,
  type SigningClient,
} from '../../../providers/mcp/oauth/token-endpoint.ts';
import { type BearerTokens, type ServerRecord, settingsOf } from '../connections.ts';
import { sha256 } from '../listed-tools.ts';
import type { Grant, GrantKeeper, GrantOf } from './grants.ts';

export type OAuthRecord = Omit<ServerRecord, 'updated_at'>;

export interface AccessTokenDeps {
  readonly keeper: GrantKeeper;
  readonly web: OpenOAuthWeb;
  /** Null: the key may not be named, or has no value now. */
  readonly secret: (tenantId: string, key: string) => string | null;
  readonly timeoutMs: number;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly now: () => number;
}

export interface AccessTokens extends BearerTokens {
  /** This service at the issuer of a grant, with the secret of now. Throws OAuthFailure. */
  signing(row: OAuthRecord, grant: Pick<Grant, 'client'>): SigningClient;
  granted(before: Omit<Grant, 'accessToken' | 'receivedAt' | 'expiresAt'>, given: GivenTokens): Grant;
  /** Scopes that a server has asked for in vain, since this process began: the next consent is asked for them, too. */
  wanted(row: OAuthRecord): readonly string[];
  /** Tells its issuer that a grant is over, best effort. */
  revoke(row: OAuthRecord, grant: Grant): Promise<void>;
}

// Before its end, or in the second half of a token that is shorter: the clocks of two machines are never the same.
const renewedBeforeMs = 60_000;
// A server whose tokens end as they are given would be asked for one with each request.
const youngestRenewedMs = 5000;

// More than any server has; a list that grows with each refusal would be as long as the server likes.
const mostWanted = 100;

/** What a grant is given for: it counts no more once the record names another server or another client. */
export const grantOf = (row: OAuthRecord): GrantOf => {
  const { endpoint, oauthClientId, oauthClientSecretConfigurationKey, oauthScopes } = settingsOf(row);
  const binding = sha256(JSON.stringify([endpoint, oauthClientId, oauthClientSecretConfigurationKey, oauthScopes]));
  return { tenantId: row.tenant_id, serverId: row.id, binding };
};

const isDue = ({ receivedAt, expiresAt, refreshToken }: Grant, now: number): boolean => {
  if (expiresAt === null || refreshToken === null || now - receivedAt < youngestRenewedMs) return false;
  return now >= expiresAt - Math.min(renewedBeforeMs, (expiresAt - receivedAt) / 2);
};

/** A step of OAuth that failed, as a failure of the server that it is for. */
const asMcpFailure = (failure: OAuthFailure): McpFailure => {
  const { reason, status, cause } = failure;
  if (reason === 'unreachable') return new McpFailure('no-answer', { cause });
  if (reason === 'no-client-secret') return new McpFailure('missing-credential', { cause: failure });
  return status === null
    ? new McpFailure('broken', { cause: failure })
    : new McpFailure('http', { status, cause: failure });
};

const headerOf = ({ accessToken }: Pick<Grant, 'accessToken'>): string => `Bearer ${accessToken}`;

/** The tokens that requests to servers carry, renewed before they end and when a server refuses one. */
export const createAccessTokens = ({ keeper, web, secret, timeoutMs, log, now }: AccessTokenDeps): AccessTokens => {
  const signing: AccessTokens['signing'] = (row, { client }) => {
    if (!client.hasConfiguredSecret) return client;
    const key = settingsOf(row).oauthClientSecretConfigurationKey;
    const value = key === null ? null : secret(row.tenant_id, key);
    if (value === null) throw new OAuthFailure('token', 'no-client-secret');
    return { ...client, secret: value };
  };

  const granted: AccessTokens['granted'] = (before, given) => {
    const receivedAt = now();
    return {
      ...before,
      accessToken: given.accessToken,
      // One that gives no other keeps the one that it has.
      refreshToken: given.refreshToken ?? before.refreshToken,
      receivedAt,
      expiresAt: given.expiresIn === null ? null : receivedAt + given.expiresIn * 1000,
    };
  };

  const renew = (row: OAuthRecord, isOld: (grant: Grant) => boolean): Promise<Grant | null> =>
    keeper.renew(grantOf(row), isOld, async (grant) => {
      const about = { tenantId: row.tenant_id, server: row.name };
      try {
        const given = await askForTokens(web(timeoutMs), grant.tokenEndpoint, signing(row, grant), {
          grant_type: 'refresh_token',
          refresh_token: grant.refreshToken ?? '',
          resource: grant.resource,
        });
        return granted(grant, given);
      } catch (error) {
        if (!(error instanceof OAuthFailure)) throw error;
        log.warn({ ...about, err: error }, 'The token of an MCP server could not be renewed');
        if (endsGrant(error)) return null;
        throw error;
      }
    });

  const missing = new Map<string, Set<string>>();

  return {
    signing,
    wanted: ({ id }) => [...(missing.get(id) ?? [])],
    forbidden(row, challenge) {
      const { error, scope } = bearerChallenge(challenge);
      if (error !== 'insufficient_scope' || scope === null) return;
      const known = missing.getOrInsertComputed(row.id, () => new Set());
      for (const one of scope.split(' ')) if (one !== '' && known.size < mostWanted) known.add(one);
      log.warn(
        { tenantId: row.tenant_id, server: row.name },
        'An MCP server wants more scopes than were granted: somebody has to authorize the service again',
      );
    },
    granted,
    lacks: (row) => keeper.lacks(grantOf(row)),
    async header(row) {
      const grant = await keeper.held(grantOf(row));
      if (grant === null) throw new McpFailure('unauthorized');
      if (!isDue(grant, now())) return headerOf(grant);
      try {
        const renewed = await renew(row, (one) => isDue(one, now()));
        if (renewed === null) throw new McpFailure('unauthorized');
        return headerOf(renewed);
      } catch (error) {
        if (!(error instanceof OAuthFailure)) throw error;
        // It still counts, as far as the clock here is right.
        if (grant.expiresAt !== null && now() < grant.expiresAt) return headerOf(grant);
        throw asMcpFailure(error);
      }
    },
    async renewed(row, refused) {
      const isOld = (grant: Grant): boolean => grant.refreshToken !== null && headerOf(grant) === refused;
      try {
        const grant = await renew(row, isOld);
        return grant !== null && headerOf(grant) !== refused;
      } catch (error) {
        if (error instanceof OAuthFailure) throw asMcpFailure(error);
        throw error;
      }
    },
    async revoke(row, grant) {
      const { revocationEndpoint, accessToken, refreshToken } = grant;
      if (revocationEndpoint === null) return;
      const tokens = [
        ...(refreshToken === null ? [] : [{ token: refreshToken, hint: 'refresh_token' as const }]),
        { token: accessToken, hint: 'access_token' as const },
      ];
      const opened = web(timeoutMs);
      try {
        for (const token of tokens) await revokeToken(opened, revocationEndpoint, signing(row, grant), token);
      } catch (error) {
        if (!(error instanceof OAuthFailure)) throw error;
        log.info({ tenantId: row.tenant_id, server: row.name, err: error }, 'A token could not be revoked');
      }
    },
  };
};
