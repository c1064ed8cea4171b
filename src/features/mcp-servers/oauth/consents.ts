import { createHash, randomBytes } from 'node:crypto';
import { AcpError } from '../../../contract/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import type { McpServerRow } from '../../../db/tables/mcp.ts';
import type { McpFailure } from '../../../providers/mcp/mcp-failure.ts';
import { bearerChallenge } from '../../../providers/mcp/oauth/challenge.ts';
import { type AuthorizationServer, discoverAuthorizationServer } from '../../../providers/mcp/oauth/metadata.ts';
import { configuredClient, type OAuthClient, registerClient } from '../../../providers/mcp/oauth/oauth-client.ts';
import { OAuthFailure } from '../../../providers/mcp/oauth/oauth-failure.ts';
import type { OAuthWeb, OpenOAuthWeb } from '../../../providers/mcp/oauth/oauth-web.ts';
import { askForTokens } from '../../../providers/mcp/oauth/token-endpoint.ts';
import { type Connections, settingsOf } from '../connections.ts';
import type { ServerSettings } from '../mcp-servers.rules.ts';
import { type AccessTokens, grantOf } from './access-tokens.ts';
import type { Consent, Grant, GrantKeeper } from './grants.ts';

export interface ConsentDeps {
  readonly keeper: GrantKeeper;
  readonly tokens: Pick<AccessTokens, 'signing' | 'granted' | 'wanted'>;
  readonly connections: Pick<Connections, 'challenge'>;
  readonly web: OpenOAuthWeb;
  readonly timeoutMs: number;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

/** What an authorization server sends its person back with, as it came. */
export interface CallbackQuery {
  readonly code?: unknown;
  readonly state?: unknown;
  readonly iss?: unknown;
  readonly error?: unknown;
}

interface Registered {
  readonly issuer: string;
  readonly client: OAuthClient;
}

const consentMs = 10 * 60_000;

const random = (): string => randomBytes(32).toString('base64url');
const hashed = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** What is asked for: what the record says, else what the server asks for, else what it knows, with what it has asked for in vain; null: what the issuer thinks fit. */
const scopeOf = (
  { oauthScopes }: ServerSettings,
  challenged: string | null,
  resourceScopes: readonly string[],
  { scopes }: AuthorizationServer,
  wanted: readonly string[],
): string | null => {
  if (oauthScopes !== null) return oauthScopes;
  const all = new Set([...(challenged?.split(' ') ?? resourceScopes), ...wanted].filter((one) => one !== ''));
  const asked = all.size === 0 ? null : [...all].join(' ');
  // Without it such a server gives no token to renew with.
  if (asked === null || !scopes.includes('offline_access') || asked.split(' ').includes('offline_access')) return asked;
  return `${asked} offline_access`;
};

const authorizationUri = (
  { server, client, redirectUri, resource, verifier }: Consent,
  state: string,
  scope: string | null,
): string => {
  const url = new URL(server.authorizationEndpoint);
  const values = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    state,
    code_challenge: hashed(verifier),
    code_challenge_method: 'S256',
    resource,
    ...(scope === null ? {} : { scope }),
    // OpenID Connect gives offline access only where the person was asked.
    ...(scope?.split(' ').includes('offline_access') === true ? { prompt: 'consent' } : {}),
  };
  for (const [name, value] of Object.entries(values)) url.searchParams.set(name, value);
  return url.href;
};

/** Asks people whether this service may use a server in their name, and takes what they come back with. */
export const createConsents = (deps: ConsentDeps) => {
  const { keeper, tokens, connections, web, log, now } = deps;
  // For the next time: a server need not know this service twice.
  const registered = new Map<string, Registered>();

  const clientOf = async (
    opened: OAuthWeb,
    row: McpServerRow,
    server: AuthorizationServer,
    asked: { readonly redirectUri: string; readonly scope: string | null },
  ): Promise<OAuthClient> => {
    const { oauthClientId, oauthClientSecretConfigurationKey } = settingsOf(row);
    if (oauthClientId !== null) {
      const client = configuredClient(server, oauthClientId, oauthClientSecretConfigurationKey !== null);
      // Told now, and not to the person who comes back.
      tokens.signing(row, { client });
      return client;
    }
    const kept = registered.get(row.id);
    if (kept?.issuer === server.issuer && (kept.client.secretExpiresAt ?? Number.POSITIVE_INFINITY) > now() + consentMs)
      return kept.client;
    const client = await registerClient(opened, server, asked);
    registered.set(row.id, { issuer: server.issuer, client });
    return client;
  };

  /** What the server says of where tokens come from, asked without one. Throws McpFailure where it does not answer. */
  const challengeOf = async (row: McpServerRow) => {
    const header = await connections.challenge(row, deps.timeoutMs);
    return bearerChallenge(header);
  };

  /** Whether an answer is of the server that the consent was asked of (RFC 9207). */
  const isOfIssuer = ({ server }: Consent, iss: unknown): boolean =>
    iss === undefined ? !server.namesItself : iss === server.issuer;

  return {
    /** Throws OAuthFailure and McpFailure. */
    async start(row: McpServerRow, redirectUri: string, actor: string | null) {
      const startedAt = performance.now();
      const settings = settingsOf(row);
      const challenge = await challengeOf(row);
      const opened = web(Math.max(1, Math.ceil(deps.timeoutMs - (performance.now() - startedAt))));
      const endpoint = new URL(settings.endpoint);
      const { server, resource, resourceScopes } = await discoverAuthorizationServer(opened, endpoint, challenge);
      const scope = scopeOf(settings, challenge.scope, resourceScopes, server, tokens.wanted(row));
      const client = await clientOf(opened, row, server, { redirectUri, scope });
      const state = random();
      const consent: Consent = {
        ...{ tenantId: row.tenant_id, serverId: row.id, binding: grantOf(row).binding },
        ...{ actor, server, client, resource, redirectUri },
        verifier: random(),
        expiresAt: now() + consentMs,
      };
      await keeper.offer(hashed(state), consent);
      return {
        authorizationUri: authorizationUri(consent, state, scope),
        state,
        expiresAt: consent.expiresAt,
        issuer: server.issuer,
      };
    },

    /** The consent that an answer belongs to, which is used up with it; null: it belongs to none, or is not a good one. */
    async answered({ state, iss, error, code }: CallbackQuery): Promise<Consent | null> {
      if (typeof state !== 'string' || state.length > 256) return null;
      // Its hash is what is looked up: how long that takes tells nothing of another state.
      const consent = await keeper.take(hashed(state));
      if (consent === null || consent.expiresAt <= now()) return null;
      if (!isOfIssuer(consent, iss) || error !== undefined || typeof code !== 'string') return null;
      return consent;
    },

    /** Exchanges the code of a good answer. Null: it was refused, or the record is not the one, or not what it was. */
    async complete(row: McpServerRow | undefined, consent: Consent, code: string): Promise<Grant | null> {
      if (row === undefined || row.id !== consent.serverId || row.enabled !== 1) return null;
      const of = grantOf(row);
      if (!settingsOf(row).oauthEnabled || of.binding !== consent.binding) return null;
      const { server, client, redirectUri, resource, verifier } = consent;
      try {
        const given = await askForTokens(web(deps.timeoutMs), server.tokenEndpoint, tokens.signing(row, { client }), {
          grant_type: 'authorization_code',
          code,
          redirect_uri: redirectUri,
          code_verifier: verifier,
          resource,
        });
        const { issuer, tokenEndpoint, revocationEndpoint } = server;
        const grant = tokens.granted(
          { issuer, tokenEndpoint, revocationEndpoint, resource, client, refreshToken: null },
          given,
        );
        await keeper.keep(of, grant);
        return grant;
      } catch (error) {
        if (!(error instanceof OAuthFailure)) throw error;
        // A client that its server does not know any more is registered anew the next time.
        if (error.oauthError === 'invalid_client') registered.delete(row.id);
        log.warn({ tenantId: row.tenant_id, server: row.name, err: error }, 'The code of a consent was not exchanged');
        return null;
      }
    },
  };
};

export type Consents = ReturnType<typeof createConsents>;

/** A server that gave no answer to the question where tokens come from, as callers are told of it. */
export const notAsked = (server: string, failure: McpFailure): AcpError =>
  new AcpError('mcp-server-failed', `The MCP server "${server}" failed.`, { cause: failure });
