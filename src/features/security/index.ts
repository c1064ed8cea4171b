import type { ApiKeyScope } from '../../contract/authority.ts';
import type { RoleDecision } from '../../core/caller/role-decision.ts';
import { identityJsonLimits, parseForeignJson } from '../../core/documents/foreign-json.ts';
import type { InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { createOutboundHttp } from '../../providers/http/outbound.ts';
import type { AuditLog } from '../audit/index.ts';
import { createIdentity, type IdentityOptions } from './identity.service.ts';
import { issuerKeys, type PublishedKeys, publishedKeys } from './issuer-keys.service.ts';
import { keyLookup } from './key-lookup.service.ts';
import { keyService } from './keys.service.ts';
import { keyStore } from './keys.store.ts';
import { type TokenLookup, tokenLookup } from './token-lookup.service.ts';
import { refusalLog } from './token-refusals.ts';

export interface SecurityDeps {
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly options: IdentityOptions;
  /** Null: the role claim of a token decides. */
  readonly roles: RoleDecision | null;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: () => string;
}

const timeoutMs = 5000;
// Documents of large providers have some ten thousand bytes.
const maxBodyBytes = 262_144;

/**
 * Reads JSON from the identity provider. Its address is the host's own configuration, so it may be in a private
 * network; redirects are not followed.
 */
const createIssuerHttp = () => {
  const http = createOutboundHttp({ allowPrivate: true });
  return {
    async fetchJson(url: URL): Promise<unknown> {
      const headers = { accept: 'application/json' };
      const { status, body } = await http.request({ method: 'GET', url, headers, timeoutMs, maxBodyBytes });
      if (status !== 200) throw new Error(`The identity provider answered ${status}.`);
      return parseForeignJson(body, identityJsonLimits);
    },
    close: () => http.close(),
  };
};

/** Tokens of the identity provider, with the connection that its keys are read through. */
const issuerTokens = (deps: SecurityDeps): { tokens: TokenLookup | null; close(): Promise<void> } => {
  const { oidc } = deps.options;
  if (oidc === null) return { tokens: null, close: async () => undefined };
  const { fetchJson, close } = createIssuerHttp();
  const keys = issuerKeys({ issuer: oidc.issuer, fetchJson, log: deps.log, now: deps.now });
  const expected = { issuer: oidc.issuer, audience: oidc.audience };
  const refused = refusalLog({ log: deps.log, now: deps.now, expected });
  return { tokens: tokenLookup({ options: oidc, keys, roles: deps.roles, refused, now: deps.now }), close };
};

/** Who may call: identity for the transports and the API keys. */
export const securityFeature = (deps: SecurityDeps) => {
  const { storage, options, audit, log, now, newId } = deps;
  const store = storage.stores(keyStore);
  const lookup = keyLookup({ store, state: deps.state, now, log });
  const { tokens, close } = issuerTokens(deps);
  return {
    identity: createIdentity({ options, keys: lookup, tokens }),
    close,
    keys: keyService({ store, lookup, audit, now, newId, rules: { options, rolesByPolicy: deps.roles !== null } }),
    hasActiveKey: (): Promise<boolean> => store.hasActive(now()),
    /** Of any tenant. */
    hasActiveKeyFor: (scope: ApiKeyScope): Promise<boolean> => store.hasActiveFor(scope, now()),
  };
};

/** What the configured issuer publishes now, for a person who asks. Throws what keeps it from being read. */
export const inspectIssuer = async (issuer: string): Promise<PublishedKeys> => {
  const { fetchJson, close } = createIssuerHttp();
  try {
    return await publishedKeys(issuer, fetchJson);
  } finally {
    await close();
  }
};

export { anonymousIsPossible, type Identity, type IdentityOptions } from './identity.service.ts';
