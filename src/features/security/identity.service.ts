import { AcpError } from '../../contract/errors.ts';
import type { CallerRequest } from '../../core/caller/caller-request.ts';
import type { Caller, Principal } from '../../core/context.ts';
import { type Credential, readCredential, secretMatcher, unauthenticated } from './credential.rules.ts';
import { looksLikeApiKey } from './key-format.rules.ts';
import type { KeyLookup } from './key-lookup.service.ts';
import { isLoopbackHost, isLoopbackOrigin, isOwnFetch, isRemote } from './loopback.rules.ts';
import { type CredentialTenant, type TenancyOptions, tenantIsFixed, tenantResolver } from './tenant.rules.ts';
import type { OidcOptions, TokenCaller, TokenLookup } from './token-lookup.service.ts';

export interface IdentityOptions {
  readonly allowRemoteAccess: boolean;
  /** Callers of this machine need no credential, as long as nothing else asks for one. */
  readonly anonymousLoopback: boolean;
  /** Null: there is no shared token. */
  readonly authToken: string | null;
  readonly defaultTenantId: string;
  readonly tenancy: TenancyOptions;
  /** Null: tokens of an identity provider are not taken. */
  readonly oidc: OidcOptions | null;
}

export interface IdentityDeps {
  readonly options: IdentityOptions;
  readonly keys: Pick<KeyLookup, 'find'>;
  /** Null exactly where `options.oidc` is. */
  readonly tokens: TokenLookup | null;
}

const anonymous: Principal = {
  kind: 'Anonymous',
  role: 'Admin',
  scopes: null,
  actor: null,
  userId: null,
  apiKey: null,
  permissions: new Set(),
};
const token: Principal = { ...anonymous, kind: 'Token', actor: 'token', permissions: null };
const nobody: Principal = { ...anonymous, role: null, scopes: new Set() };

/** True while callers without a credential may be accepted at all. */
export const anonymousIsPossible = (
  options: Pick<IdentityOptions, 'allowRemoteAccess' | 'anonymousLoopback' | 'authToken' | 'oidc'>,
): boolean =>
  options.anonymousLoopback && options.authToken === null && options.oidc === null && !options.allowRemoteAccess;

/** A page of another site in the user's browser also comes from loopback: its Host or Origin gives it away. */
const assertSameMachine = (request: CallerRequest): void => {
  const host = request.header('host');
  if (host === undefined || !isLoopbackHost(host) || request.headerCount('host') > 1)
    throw new AcpError('origin-denied', 'Without a credential the Host header must name this machine.');
  const origin = request.header('origin');
  if (origin !== undefined && !isLoopbackOrigin(origin))
    throw new AcpError('origin-denied', 'Without a credential the Origin must be a page of this machine.');
};

const none: CredentialTenant = { tenantId: null, headerMayName: true };

/**
 * Who calls. Answers without a promise unless a key has to be read from the store, or a token's signature checked.
 * Design: docs/design/callers.md.
 */
export const createIdentity = ({ options, keys, tokens }: IdentityDeps) => {
  const isAuthToken = options.authToken === null ? () => false : secretMatcher(options.authToken);
  const resolveTenant = tenantResolver(options.tenancy, options.defaultTenantId);
  const fixedTenant = tenantIsFixed(options.tenancy);

  /** One caller object for all requests as long as no header can change its tenant. */
  const callerOf = (principal: Principal): ((request: CallerRequest) => Caller) => {
    let shared: Caller | undefined;
    return (request) => {
      if (shared !== undefined) return shared;
      const caller = { principal, tenantId: resolveTenant(request, none) };
      if (fixedTenant) shared = caller;
      return caller;
    };
  };
  const anonymousCaller = callerOf(anonymous);
  const tokenCaller = callerOf(token);
  const nobodyHere: Caller = { principal: nobody, tenantId: options.defaultTenantId };

  const keyCaller = (caller: Caller | null, request: CallerRequest): Caller | null => {
    // The header of a key can only contradict it.
    if (caller !== null) resolveTenant(request, { tenantId: caller.tenantId, headerMayName: false });
    return caller;
  };
  const bearerOf = (caller: TokenCaller | null, request: CallerRequest): Caller | null =>
    caller === null
      ? null
      : {
          principal: caller.principal,
          tenantId: resolveTenant(request, { tenantId: caller.tenantId, headerMayName: false }),
        };

  /** An API key, or a token of the identity provider; null: neither. */
  const find = ({ form, text }: Credential, request: CallerRequest): Caller | null | Promise<Caller | null> => {
    if (looksLikeApiKey(text)) {
      const caller = keys.find(text);
      return caller instanceof Promise ? caller.then((key) => keyCaller(key, request)) : keyCaller(caller, request);
    }
    if (tokens === null || form !== 'Bearer') return null;
    const bearer = tokens.find(text);
    return bearer instanceof Promise ? bearer.then((token) => bearerOf(token, request)) : bearerOf(bearer, request);
  };
  const isToken = ({ form, text }: Credential): boolean => form === 'Bearer' && text !== '' && isAuthToken(text);

  const orRefuse = (caller: Caller | null): Caller => {
    if (caller === null) throw unauthenticated();
    return caller;
  };

  const assertNotRemote = (request: CallerRequest): void => {
    if (!options.allowRemoteAccess && isRemote(request))
      throw new AcpError('remote-access-denied', 'Callers from other machines are not served here.');
  };

  const withoutCredential = (request: CallerRequest): Caller => {
    if (!anonymousIsPossible(options)) throw unauthenticated();
    assertSameMachine(request);
    if (!isOwnFetch(request)) throw unauthenticated();
    return anonymousCaller(request);
  };

  const rolesOnly = (request: CallerRequest): Caller | Promise<Caller> => {
    const credential = readCredential(request);
    if (credential === null) {
      if (isRemote(request)) return nobodyHere;
      return withoutCredential(request);
    }
    if (isToken(credential)) return { principal: token, tenantId: options.defaultTenantId };
    const holder = find(credential, request);
    if (!(holder instanceof Promise)) return holder ?? nobodyHere;
    // Also answered while the store or the issuer is unavailable: it just cannot tell whose credential this is.
    return holder.then(
      (caller) => caller ?? nobodyHere,
      () => nobodyHere,
    );
  };

  return {
    /** Remote rule, credential, tenant, in this order; throws the first refusal as AcpError. */
    authenticate(request: CallerRequest): Caller | Promise<Caller> {
      assertNotRemote(request);
      const credential = readCredential(request);
      if (credential === null) return withoutCredential(request);
      if (isToken(credential)) return tokenCaller(request);
      const caller = find(credential, request);
      return caller instanceof Promise ? caller.then(orRefuse) : orRefuse(caller);
    },
    /** For operations that a signature protects: the remote rule alone, whatever credential was sent. */
    signedCaller(request: CallerRequest): Caller {
      assertNotRemote(request);
      return nobodyHere;
    },
    /** For operations without a role: never refuses; a missing or bad credential gives a caller without a role. */
    metaCaller(request: CallerRequest): Caller | Promise<Caller> {
      try {
        return rolesOnly(request);
      } catch (error) {
        // Only a refusal is expected here: the operation answers it, without a role.
        if (error instanceof AcpError) return nobodyHere;
        throw error;
      }
    },
  };
};

export type Identity = ReturnType<typeof createIdentity>;
