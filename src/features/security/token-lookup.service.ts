import { hash } from 'node:crypto';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import { JWKSNoMatchingKey } from 'jose/errors';
import { type JWTVerifyOptions, jwtVerify } from 'jose/jwt/verify';
import { AcpError } from '../../contract/errors.ts';
import type { RoleDecision } from '../../core/caller/role-decision.ts';
import type { Principal } from '../../core/context.ts';
import type { IssuerKeys, KeySet } from './issuer-keys.service.ts';
import { actorIn, permissionsIn, roleIn, subjectIn, type TokenClaims, tenantIn } from './token-claims.rules.ts';
import { type RefusedToken, refusalOf } from './token-refusals.ts';

export interface OidcOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly roleClaim: string;
  /** Null: no claim is read and tokens name no tenant. */
  readonly tenantClaim: string | null;
  /** Null: the usual claims in turn. */
  readonly actorClaim: string | null;
}

/** Who a token stands for; its tenant is null when it names none. */
export interface TokenCaller {
  readonly principal: Principal;
  readonly tenantId: string | null;
}

export interface TokenLookupDeps {
  readonly options: OidcOptions;
  readonly keys: IssuerKeys;
  /** Null: the role claim decides. */
  readonly roles: RoleDecision | null;
  /** Called for each token that is not good. */
  readonly refused: (refused: RefusedToken) => void;
  readonly now: () => number;
}

// Neither `none` nor a shared secret: a public key must never be taken for one.
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const leewaySeconds = 60;
// As long as API keys are remembered; spares most requests the check of a signature.
const rememberMs = 5000;
const maxRemembered = 10_000;

const tokenShape = /^[\w-]+\.[\w-]+\.[\w-]+$/;

const hasKnownAlgorithm = (token: string): boolean => {
  try {
    return algorithms.includes(decodeProtectedHeader(token).alg ?? '');
  } catch {
    // It only looks like a token.
    return false;
  }
};

/** Turns a token of the identity provider into its caller, from memory where possible. */
export const tokenLookup = ({ options, keys, roles, refused, now }: TokenLookupDeps) => {
  const { issuer, audience, roleClaim, tenantClaim, actorClaim } = options;
  const callers = new Map<string, { readonly caller: TokenCaller; readonly readAt: number; readonly endsAt: number }>();

  const refuse = (token: RefusedToken): null => {
    refused(token);
    return null;
  };
  /** Null for a token that is not good. What else fails is a key of the issuer that no signature can be checked with. */
  const orBad = (error: unknown): null => {
    const reason = refusalOf(error);
    if (reason === null)
      throw new AcpError('identity-unavailable', 'A key of the identity provider cannot be used.', { cause: error });
    return refuse(reason);
  };

  const verifyWith = async (token: string, keySet: KeySet): Promise<TokenClaims> => {
    const rules: JWTVerifyOptions = {
      issuer,
      audience,
      algorithms,
      clockTolerance: leewaySeconds,
      requiredClaims: ['exp'],
      currentDate: new Date(now()),
    };
    return (await jwtVerify(token, keySet, rules)).payload;
  };

  const verify = async (token: string): Promise<TokenClaims | null> => {
    const keySet = await keys.current();
    try {
      return await verifyWith(token, keySet);
    } catch (error) {
      if (!(error instanceof JWKSNoMatchingKey)) return orBad(error);
    }
    const newer = await keys.newerThan(keySet);
    return newer === null ? refuse({ reason: 'key' }) : verifyWith(token, newer).catch(orBad);
  };

  const callerOf = async (claims: TokenClaims): Promise<TokenCaller | null> => {
    const userId = subjectIn(claims);
    // A subject that is one of the service's own names could pass for a key.
    if (userId === null && claims['sub'] !== undefined) return refuse({ reason: 'subject' });
    const principal: Principal = {
      kind: 'Oidc',
      role: roleIn(claims, roleClaim),
      scopes: null,
      actor: actorIn(claims, actorClaim),
      userId,
      apiKey: null,
      permissions: permissionsIn(claims),
    };
    const role = roles === null ? principal.role : await roles({ ...principal, role: null }, claims);
    return { principal: { ...principal, role }, tenantId: tenantIn(claims, tenantClaim) };
  };

  const read = async (token: string, key: string): Promise<TokenCaller | null> => {
    const claims = await verify(token);
    const caller = claims === null ? null : await callerOf(claims);
    if (caller === null) return null;
    const endsAt = (Number(claims?.['exp']) + leewaySeconds) * 1000;
    const oldest = callers.size < maxRemembered ? undefined : callers.keys().next().value;
    if (oldest !== undefined) callers.delete(oldest);
    callers.set(key, { caller, readAt: now(), endsAt });
    return caller;
  };

  return {
    /** Null: not a good token. Rejects with `identity-unavailable`, and with `invalid-tenant` for a good one. */
    find(token: string): TokenCaller | null | Promise<TokenCaller | null> {
      if (!tokenShape.test(token)) return refuse({ reason: 'form' });
      if (!hasKnownAlgorithm(token)) return refuse({ reason: 'algorithm' });
      const key = hash('sha256', token, 'base64');
      const remembered = callers.get(key);
      const at = now();
      if (remembered !== undefined) {
        const { readAt, endsAt, caller } = remembered;
        if (at >= readAt && at - readAt < rememberMs && at < endsAt) return caller;
        callers.delete(key);
      }
      return read(token, key);
    },
  };
};

export type TokenLookup = ReturnType<typeof tokenLookup>;
