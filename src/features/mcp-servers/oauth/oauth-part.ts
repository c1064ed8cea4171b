import type { Logger } from '../../../core/logger.ts';
import type { Storage } from '../../../db/storage.ts';
import type { McpServerRow } from '../../../db/tables/mcp.ts';
import type { OutboundHttp } from '../../../providers/http/outbound.ts';
import { oauthWeb } from '../../../providers/mcp/oauth/oauth-web.ts';
import { type Connections, type SecretOf, settingsOf } from '../connections.ts';
import { isSafeForCredentials } from '../mcp-servers.rules.ts';
import { createAccessTokens, grantOf } from './access-tokens.ts';
import { type ConsentDeps, createConsents } from './consents.ts';
import { mcpGrantStore } from './mcp-grants.store.ts';
import { memoryGrants } from './memory-grants.ts';
import { type McpTokenStore, moduleGrants } from './module-grants.ts';
import { type OAuthServiceDeps, oauthService } from './oauth.service.ts';
import { oauthCheck } from './oauth-check.ts';
import { storedGrants } from './stored-grants.ts';

export interface OAuthPartDeps
  extends Pick<OAuthServiceDeps, 'enabled' | 'callbackBaseUri' | 'prefix' | 'timeoutMs' | 'audit'> {
  readonly storage: Pick<Storage, 'stores'>;
  readonly http: Pick<OutboundHttp, 'request'>;
  readonly secret: SecretOf;
  readonly allowPrivate: boolean;
  /** `Mcp:OAuthTokenStore` is Database. */
  readonly shared: boolean;
  /** Of a module, in place of both; null: no module has one. */
  readonly tokenStore: McpTokenStore | null;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** OAuth of remote servers: what was granted, the tokens of connections, and the operations. */
export const oauthPart = ({
  storage,
  http,
  secret,
  allowPrivate,
  shared,
  tokenStore,
  log,
  now,
  newId,
  ...deps
}: OAuthPartDeps) => {
  const { timeoutMs } = deps;
  const web = oauthWeb({ http, isSafe: (url) => isSafeForCredentials(url, allowPrivate) });
  const inTurns = { now, newId, renewalMs: timeoutMs };
  const grants = storage.stores(mcpGrantStore);
  const ownKeeper = () => (shared ? storedGrants({ ...inTurns, store: grants }) : memoryGrants(now));
  const keeper =
    tokenStore === null ? ownKeeper() : moduleGrants({ ...inTurns, store: tokenStore, claims: grants, log });
  const tokens = createAccessTokens({ keeper, web, secret, timeoutMs, log, now });

  return {
    tokens,
    check: (connections: Pick<Connections, 'challenge' | 'lacking'>) =>
      oauthCheck({ connections, web, callbackBaseUri: deps.callbackBaseUri, timeoutMs }),
    async forgetGrant(before: McpServerRow, after: McpServerRow | null): Promise<void> {
      const stays =
        after !== null && settingsOf(after).oauthEnabled && grantOf(after).binding === grantOf(before).binding;
      if (!stays) await keeper.forget({ tenantId: before.tenant_id, serverId: before.id });
    },
    service(own: Pick<OAuthServiceDeps, 'store' | 'discovery'> & Pick<OAuthServiceDeps & ConsentDeps, 'connections'>) {
      const { connections } = own;
      const consents = createConsents({ keeper, tokens, connections, web, timeoutMs, log, now });
      return oauthService({ ...deps, ...own, consents, keeper, tokens });
    },
  };
};
