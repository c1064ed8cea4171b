import { AcpError } from '../../contract/errors.ts';
import type { CallerRequest } from '../../core/caller-request.ts';
import type { Principal } from '../../core/context.ts';
import type { Caller } from '../../core/dispatch.ts';
import { type Credential, readCredential, secretMatcher, unauthenticated } from './credential.rules.ts';
import { looksLikeApiKey } from './key-format.rules.ts';
import type { KeyLookup } from './key-lookup.service.ts';
import { isLoopbackHost, isLoopbackOrigin, isRemote } from './loopback.rules.ts';
import { type TenancyOptions, tenantIsFixed, tenantResolver } from './tenant.rules.ts';

export interface IdentityOptions {
  readonly allowRemoteAccess: boolean;
  /** Null: there is no shared token. */
  readonly authToken: string | null;
  readonly defaultTenantId: string;
  readonly tenancy: TenancyOptions;
}

export interface IdentityDeps {
  readonly options: IdentityOptions;
  readonly keys: Pick<KeyLookup, 'find'>;
}

/** Who calls. Answers without a promise unless an API key has to be read from the store. */
export interface Identity {
  /** Remote rule, credential, tenant, in this order; throws the first refusal as AcpError. */
  authenticate(request: CallerRequest): Caller | Promise<Caller>;
  /** For operations without a role: never refuses; a missing or bad credential gives a caller without a role. */
  metaCaller(request: CallerRequest): Caller | Promise<Caller>;
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
export const anonymousIsPossible = (options: Pick<IdentityOptions, 'allowRemoteAccess' | 'authToken'>): boolean =>
  options.authToken === null && !options.allowRemoteAccess;

/** A page of another site in the user's browser also comes from loopback: its Host or Origin gives it away. */
const assertSameMachine = (request: CallerRequest): void => {
  const host = request.header('host');
  if (host === undefined || !isLoopbackHost(host) || request.headerCount('host') > 1)
    throw new AcpError('origin-denied', 'Without a credential the Host header must name this machine.');
  const origin = request.header('origin');
  if (origin !== undefined && !isLoopbackOrigin(origin))
    throw new AcpError('origin-denied', 'Without a credential the Origin must be a page of this machine.');
};

export const createIdentity = ({ options, keys }: IdentityDeps): Identity => {
  const isAuthToken = options.authToken === null ? () => false : secretMatcher(options.authToken);
  const resolveTenant = tenantResolver(options.tenancy, options.defaultTenantId);
  const fixedTenant = tenantIsFixed(options.tenancy);

  /** One caller object for all requests as long as no header can change its tenant. */
  const callerOf = (principal: Principal): ((request: CallerRequest) => Caller) => {
    let shared: Caller | undefined;
    return (request) => {
      if (shared !== undefined) return shared;
      const caller = { principal, tenantId: resolveTenant(request, null) };
      if (fixedTenant) shared = caller;
      return caller;
    };
  };
  const anonymousCaller = callerOf(anonymous);
  const tokenCaller = callerOf(token);
  const nobodyHere: Caller = { principal: nobody, tenantId: options.defaultTenantId };

  const findKey = (credential: Credential): Caller | null | Promise<Caller | null> =>
    looksLikeApiKey(credential.text) ? keys.find(credential.text) : null;
  const isToken = ({ form, text }: Credential): boolean => form === 'Bearer' && text !== '' && isAuthToken(text);

  const keyCaller = (found: Caller | null, request: CallerRequest): Caller => {
    if (found === null) throw unauthenticated();
    resolveTenant(request, found.tenantId);
    return found;
  };

  const withoutCredential = (request: CallerRequest): Caller => {
    if (!anonymousIsPossible(options)) throw unauthenticated();
    assertSameMachine(request);
    return anonymousCaller(request);
  };

  const rolesOnly = (request: CallerRequest): Caller | Promise<Caller> => {
    const credential = readCredential(request);
    if (credential === null) {
      if (isRemote(request)) return nobodyHere;
      return withoutCredential(request);
    }
    if (isToken(credential)) return { principal: token, tenantId: options.defaultTenantId };
    const found = findKey(credential);
    if (!(found instanceof Promise)) return found ?? nobodyHere;
    // The operation answers while the store is away, too; it only cannot tell whose key this is.
    return found.then(
      (caller) => caller ?? nobodyHere,
      () => nobodyHere,
    );
  };

  return {
    authenticate(request) {
      if (!options.allowRemoteAccess && isRemote(request))
        throw new AcpError('remote-access-denied', 'Callers from other machines are not served here.');
      const credential = readCredential(request);
      if (credential === null) return withoutCredential(request);
      if (isToken(credential)) return tokenCaller(request);
      const found = findKey(credential);
      return found instanceof Promise ? found.then((caller) => keyCaller(caller, request)) : keyCaller(found, request);
    },
    metaCaller(request) {
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
