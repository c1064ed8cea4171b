import { JOSEError, JWKSNoMatchingKey, JWTClaimValidationFailed, JWTExpired } from 'jose/errors';
import type { Logger } from '../../core/logger.ts';

/** What was wrong with a token; its caller gets the one 401 for all of them. */
export type TokenRefusal = 'form' | 'algorithm' | 'key' | 'signature' | 'issuer' | 'audience' | 'time' | 'subject';

const sentences: Readonly<Record<TokenRefusal, string>> = {
  form: 'A Bearer token was refused: it is neither a JWT nor a credential of this service',
  algorithm: 'A token was refused: its algorithm is not one of RS256, PS256, ES256 and EdDSA',
  key: 'A token was refused: the issuer publishes no key that it could be signed with',
  signature: 'A token was refused: its signature is not one of the issuer',
  issuer: 'A token was refused: its issuer is not Host:Oidc:Issuer to the letter',
  audience: 'A token was refused: it is not made for Host:Oidc:Audience',
  time: 'A token was refused: it has no expiry, has expired or is not valid yet',
  subject: 'A token was refused: its subject cannot stand for a person here',
};

const claimReasons: Readonly<Record<string, TokenRefusal>> = {
  iss: 'issuer',
  aud: 'audience',
  exp: 'time',
  nbf: 'time',
  iat: 'time',
};

export interface RefusedToken {
  readonly reason: TokenRefusal;
  /** Never the token or a part of it. Claims only where the signature was good: the issuer wrote them. */
  readonly found?: unknown;
}

const maxTextLength = 200;
const maxTexts = 5;

/** A claim as it may stand in a log: short text, a number, or a few of them. */
const shown = (value: unknown): unknown => {
  if (typeof value === 'string') return value.slice(0, maxTextLength);
  if (typeof value === 'number') return value;
  return Array.isArray(value)
    ? value
        .slice(0, maxTexts)
        .filter((item) => typeof item === 'string')
        .map(shown)
    : undefined;
};

/** Why a token was not verified; null for what is no fault of the token. */
export const refusalOf = (error: unknown): RefusedToken | null => {
  if (error instanceof JWTClaimValidationFailed || error instanceof JWTExpired) {
    const found = shown(error.payload[error.claim]);
    return { reason: claimReasons[error.claim] ?? 'form', ...(found === undefined ? {} : { found }) };
  }
  if (error instanceof JWKSNoMatchingKey) return { reason: 'key' };
  if (!(error instanceof JOSEError)) return null;
  if (error.code === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') return { reason: 'signature' };
  if (error.code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') return { reason: 'key' };
  return { reason: error.code === 'ERR_JOSE_ALG_NOT_ALLOWED' ? 'algorithm' : 'form' };
};

// Anybody can send bad tokens; they must neither fill the log nor hide other faults.
const linesEachMinute = 5;
const minuteMs = 60_000;

export interface RefusalLogDeps {
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
  /** What is asked of tokens, to be compared with what was found. */
  readonly expected: Readonly<Partial<Record<TokenRefusal, string>>>;
}

/** Writes at most a few lines a minute for each reason; the first line of a minute tells how many were left out before. */
export const refusalLog = ({ log, now, expected }: RefusalLogDeps): ((refused: RefusedToken) => void) => {
  const windows = new Map<TokenRefusal, { readonly startedAt: number; lines: number; unlogged: number }>();
  return ({ reason, found }) => {
    const at = now();
    let window = windows.get(reason);
    const unlogged = window?.unlogged ?? 0;
    const age = window === undefined ? minuteMs : at - window.startedAt;
    if (window === undefined || age < 0 || age >= minuteMs) {
      window = { startedAt: at, lines: 0, unlogged: 0 };
      windows.set(reason, window);
    }
    if (window.lines >= linesEachMinute) {
      window.unlogged += 1;
      return;
    }
    window.lines += 1;
    const fields = {
      reason,
      ...(expected[reason] === undefined ? {} : { expected: expected[reason] }),
      ...(found === undefined ? {} : { found }),
      ...(window.lines === 1 && unlogged > 0 ? { unlogged } : {}),
    };
    log.warn(fields, sentences[reason]);
  };
};
