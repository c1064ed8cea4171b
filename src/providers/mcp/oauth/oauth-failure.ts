/**
 * `unreachable`: no answer; its cause says why. `status`: an answer outside 2xx that says nothing more. `not-json`: an answer
 * that is no JSON object. `wrong-resource`: the metadata are of another resource. `no-authorization-server`: none is named.
 * `wrong-issuer`: somebody else says to be the authorization server. `unsafe-address`: one that is not https. `incomplete`: a
 * member that is needed is missing or wrong. `no-pkce`: the server does not know S256. `no-client`: this service is not known
 * there. `no-client-secret`: its secret has no value. `no-client-authentication`: none of the ways that are known here.
 * `refused`: an error of OAuth, which `oauthError` names.
 */
export type OAuthReason =
  | 'unreachable'
  | 'status'
  | 'not-json'
  | 'wrong-resource'
  | 'no-authorization-server'
  | 'wrong-issuer'
  | 'unsafe-address'
  | 'incomplete'
  | 'no-pkce'
  | 'no-client'
  | 'no-client-secret'
  | 'no-client-authentication'
  | 'refused';

export type OAuthStep = 'resource-metadata' | 'server-metadata' | 'registration' | 'token' | 'revocation';

interface OAuthFailureParts {
  readonly status?: number;
  readonly oauthError?: string;
  readonly cause?: unknown;
}

/** A step of OAuth that came to nothing. Nothing in it was said by the other side but a number and the name of an error. */
export class OAuthFailure extends Error {
  readonly step: OAuthStep;
  readonly reason: OAuthReason;
  readonly status: number | null;
  readonly oauthError: string | null;

  constructor(step: OAuthStep, reason: OAuthReason, { status, oauthError, cause }: OAuthFailureParts = {}) {
    super(`OAuth failed at ${step}: ${reason}.`, cause === undefined ? undefined : { cause });
    this.name = 'OAuthFailure';
    this.step = step;
    this.reason = reason;
    this.status = status ?? null;
    this.oauthError = oauthError ?? null;
  }
}

const final: ReadonlySet<string | null> = new Set(['invalid_grant', 'invalid_client', 'unauthorized_client']);

/** True: what was granted is of no more use, and asking again changes nothing. */
export const endsGrant = ({ reason, oauthError }: OAuthFailure): boolean =>
  reason === 'refused' && final.has(oauthError);
