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
  new AcpError(
    'ambiguous-credentials',
    'Send one credential, as Authorization or as X-Api-Key. Both may be sent with the same text.',
  );

const bearer = /^bearer (\S+)$/i;

/**
 * Null when none was sent. Two credentials, in two headers or in one that is repeated, are refused; a bearer token and an API key of
 * the same text are one credential, since generated clients fill in every scheme of the API description.
 */
export const readCredential = (request: CallerRequest): Credential | null => {
  const authorization = request.header('authorization');
  const apiKey = request.header('x-api-key');
  if (authorization === undefined && apiKey === undefined) return null;
  if (request.headerCount('x-api-key') > 1 || request.headerCount('authorization') > 1) throw ambiguous();
  if (authorization === undefined) return { form: 'ApiKey', text: apiKey ?? '' };
  const text = bearer.exec(authorization)?.[1] ?? '';
  if (apiKey !== undefined && (text === '' || text !== apiKey)) throw ambiguous();
  return { form: 'Bearer', text };
};

/** Equality with a secret in constant time: digests have one length, whatever the lengths of the texts. */
export const secretMatcher = (secret: string): ((candidate: string) => boolean) => {
  const expected = hash('sha256', secret, 'buffer');
  return (candidate) => timingSafeEqual(hash('sha256', candidate, 'buffer'), expected);
};
