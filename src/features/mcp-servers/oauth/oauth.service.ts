import { AcpError } from '../../../contract/errors.ts';
import { noContent, ok } from '../../../contract/operation.ts';
import type { Handlers } from '../../../core/context.ts';
import { isoTime } from '../../../core/iso-time.ts';
import type { McpServerRow } from '../../../db/tables/mcp.ts';
import { McpFailure } from '../../../providers/mcp/mcp-failure.ts';
import { OAuthFailure } from '../../../providers/mcp/oauth/oauth-failure.ts';
import type { AuditLog } from '../../audit/index.ts';
import { type Connections, settingsOf } from '../connections.ts';
import type { Discovery } from '../discovery.ts';
import type { mcpServerOperations } from '../mcp-servers.operations.ts';
import { assertEnabled } from '../mcp-servers.service.ts';
import type { McpServerStore } from '../mcp-servers.store.ts';
import { noServer } from '../mcp-servers.view.ts';
import type { AccessTokens } from './access-tokens.ts';
import { callbackPages } from './callback-page.ts';
import { type Consents, notAsked } from './consents.ts';
import type { GrantKeeper } from './grants.ts';
import { oauthError } from './oauth-words.ts';

export interface OAuthServiceDeps {
  readonly store: Pick<McpServerStore, 'find'>;
  readonly consents: Consents;
  readonly keeper: Pick<GrantKeeper, 'forget'>;
  readonly tokens: Pick<AccessTokens, 'revoke'>;
  readonly connections: Pick<Connections, 'drop'>;
  readonly discovery: Pick<Discovery, 'look'>;
  readonly enabled: boolean;
  /** `Mcp:OAuthCallbackBaseUri`. */
  readonly callbackBaseUri: string | null;
  /** Mount prefix; empty for the root. */
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly audit: Pick<AuditLog, 'tell'>;
}

// Somebody looks at a blank page meanwhile.
const longestLookMs = 5000;

type OAuthHandlers = Pick<Handlers<typeof mcpServerOperations>, 'oauthStart' | 'oauthCallback' | 'oauthDisconnect'>;

/** Authorizes this service at servers that want OAuth. */
export const oauthService = (deps: OAuthServiceDeps): OAuthHandlers => {
  const { store, consents, connections, discovery, audit } = deps;

  const redirectUri = (name: string): string => {
    if (deps.callbackBaseUri === null)
      throw new AcpError(
        'oauth-callback-not-configured',
        'The address that people come back to is not set (Service:Mcp:OAuthCallbackBaseUri).',
      );
    const base = deps.callbackBaseUri.replace(/\/+$/, '');
    return `${base}${deps.prefix}/api/mcp-servers/${encodeURIComponent(name)}/oauth/callback`;
  };
  const startable = async (tenantId: string, name: string): Promise<McpServerRow> => {
    assertEnabled(deps.enabled);
    const row = await store.find(tenantId, name);
    if (row === undefined) throw noServer(name);
    if (!settingsOf(row).oauthEnabled)
      throw new AcpError('oauth-not-enabled', `The MCP server "${name}" is not saved with oauthEnabled.`);
    if (row.enabled !== 1) throw new AcpError('mcp-server-disabled', `The MCP server "${name}" is disabled.`);
    return row;
  };
  const started = async (row: McpServerRow, actor: string | null) => {
    try {
      return await consents.start(row, redirectUri(row.name), actor);
    } catch (error) {
      if (error instanceof OAuthFailure) throw oauthError(row.name, error);
      if (error instanceof McpFailure) throw notAsked(row.name, error);
      throw error;
    }
  };
  /** What it can do with another credential, or without one. */
  const lookAnew = async (row: McpServerRow): Promise<void> => {
    connections.drop(row.id);
    if (row.enabled === 1) await discovery.look(row, { timeoutMs: Math.min(deps.timeoutMs, longestLookMs) });
  };

  return {
    async oauthStart(context, { params: { name } }) {
      const row = await startable(context.tenantId, name);
      const { authorizationUri, state, expiresAt, issuer } = await started(row, context.principal.actor);
      await audit.tell(context, { id: name, before: null, after: { issuer, expiresAt: isoTime(expiresAt) } });
      return ok({ authorizationUri, state, expiresAt: isoTime(expiresAt) });
    },

    async oauthCallback(context, { params: { name }, query }) {
      const failed = { status: 400, body: callbackPages.failed } as const;
      const consent = await consents.answered(query);
      if (consent === null) return failed;
      const { tenantId, actor } = consent;
      const row = await store.find(tenantId, name);
      const grant = await consents.complete(row, consent, String(query.code));
      if (row === undefined || grant === null) return failed;
      const { issuer, expiresAt } = grant;
      const after = { issuer, expiresAt: expiresAt === null ? null : isoTime(expiresAt) };
      // Whoever started it has done it: the call itself comes without a credential.
      await audit.tell({ ...context, tenantId, principal: { actor } }, { id: name, before: null, after });
      await lookAnew(row);
      return ok(callbackPages.connected);
    },

    async oauthDisconnect(context, { params: { name } }) {
      const { tenantId } = context;
      const row = await store.find(tenantId, name);
      if (row === undefined) throw noServer(name);
      const grant = await deps.keeper.forget({ tenantId, serverId: row.id });
      if (grant === null) throw new AcpError('not-found', `No token of the MCP server "${name}" is held.`);
      await audit.tell(context, { id: name, before: { issuer: grant.issuer }, after: null });
      await deps.tokens.revoke(row, grant);
      await lookAnew(row);
      return noContent();
    },
  };
};
