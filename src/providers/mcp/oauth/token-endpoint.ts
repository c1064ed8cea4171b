import type { OAuthClient } from './oauth-client.ts';
import { OAuthFailure, type OAuthStep } from './oauth-failure.ts';
import type { JsonAnswer, OAuthWeb } from './oauth-web.ts';

/** What a token endpoint has given. */
export interface GivenTokens {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  /** Seconds from now; null: it does not say. */
  readonly expiresIn: number | null;
}

/** A client with its secret at hand. */
export type SigningClient = Pick<OAuthClient, 'id' | 'authentication' | 'secret'>;

// What may stand in a header (RFC 6750, and more than that says).
const sendable = /^[\x21-\x7e]+$/;
// RFC 6749, section 5.2, RFC 8707 and RFC 7009. A name that is none of them is a text of the server.
const errorNames: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'unsupported_token_type',
]);
// Years: what is longer is as good as no end, and would not be a time any more.
const longestSeconds = 10 * 365 * 86_400;

const encoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);

/** RFC 6749, section 2.3.1. */
const withClient = (
  fields: Readonly<Record<string, string>>,
  { id, authentication, secret }: SigningClient,
): { readonly body: URLSearchParams; readonly headers: Readonly<Record<string, string>> } => {
  if (authentication === 'client_secret_basic') {
    const pair = Buffer.from(`${encoded(id)}:${encoded(secret ?? '')}`).toString('base64');
    return { body: new URLSearchParams(fields), headers: { authorization: `Basic ${pair}` } };
  }
  const own = authentication === 'none' ? { client_id: id } : { client_id: id, client_secret: secret ?? '' };
  return { body: new URLSearchParams({ ...fields, ...own }), headers: {} };
};

const assertGiven = ({ status, body }: JsonAnswer, step: OAuthStep): void => {
  if (status === 200) return;
  const error = body?.['error'];
  if (typeof error === 'string' && errorNames.has(error))
    throw new OAuthFailure(step, 'refused', { status, oauthError: error });
  throw new OAuthFailure(step, 'status', { status });
};

const seconds = (value: unknown): number | null => {
  // Some servers write the number as a text.
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && number >= 0 ? Math.min(number, longestSeconds) : null;
};

const tokensOf = ({ body }: JsonAnswer): GivenTokens => {
  const { access_token: access, refresh_token: refresh, token_type: type, expires_in: expiresIn } = body ?? {};
  if (typeof access !== 'string' || !sendable.test(access)) throw new OAuthFailure('token', 'incomplete');
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') throw new OAuthFailure('token', 'incomplete');
  return {
    accessToken: access,
    refreshToken: typeof refresh === 'string' && refresh !== '' ? refresh : null,
    expiresIn: seconds(expiresIn),
  };
};

/** Asks for tokens. Throws OAuthFailure. */
export const askForTokens = async (
  web: OAuthWeb,
  tokenEndpoint: string,
  client: SigningClient,
  fields: Readonly<Record<string, string>>,
): Promise<GivenTokens> => {
  const { body, headers } = withClient(fields, client);
  const answer = await web.post(new URL(tokenEndpoint), 'token', body, headers);
  assertGiven(answer, 'token');
  return tokensOf(answer);
};

/** Gives a token back (RFC 7009). Throws OAuthFailure. */
export const revokeToken = async (
  web: OAuthWeb,
  revocationEndpoint: string,
  client: SigningClient,
  { token, hint }: { readonly token: string; readonly hint: 'access_token' | 'refresh_token' },
): Promise<void> => {
  const { body, headers } = withClient({ token, token_type_hint: hint }, client);
  assertGiven(await web.post(new URL(revocationEndpoint), 'revocation', body, headers), 'revocation');
};
