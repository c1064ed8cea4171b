import { hash, timingSafeEqual } from 'node:crypto';
import { AcpError } from '../../contract/errors.ts';
import type { CallerRequest } from '../../core/caller/caller-request.ts';

/** A credential as it was sent. `text` is empty when its form is wrong, which fits nothing. */
export interface Credential {
  readonly form: 'Bearer' | 'ApiKey';
  readonly text: string;
}

/** The one answer to every missing or bad credential: it must not tell which of them it was. */
export const unauthenticated = (): AcpError =>
  new AcpError('unauthenticated', 'Send a valid token or API key as a Bearer token, or an API key as X-Api-Key.');

const ambiguous = (): AcpError =>
  new AcpError('ambiguous-credentials', 'Send one credential, either as Authorization or as X-Api-Key.');

const bearer = /^bearer (\S+)$/i;

/** Null when none was sent. Two credentials, in two headers or in one that is repeated, are refused. */
export const readCredential = (request: CallerRequest): Credential | null => {
  const authorization = request.header('authorization');
  const apiKey = request.header('x-api-key');
  if (authorization === undefined && apiKey === undefined) return null;
  if (authorization !== undefined && apiKey !== undefined) throw ambiguous();
  if (request.headerCount(authorization === undefined ? 'x-api-key' : 'authorization') > 1) throw ambiguous();
  if (apiKey !== undefined) return { form: 'ApiKey', text: apiKey };
  return { form: 'Bearer', text: bearer.exec(authorization ?? '')?.[1] ?? '' };
};

/** Equality with a secret in constant time: digests have one length, whatever the lengths of the texts. */
export const secretMatcher = (secret: string): ((candidate: string) => boolean) => {
  const expected = hash('sha256', secret, 'buffer');
  return (candidate) => timingSafeEqual(hash('sha256', candidate, 'buffer'), expected);
};
