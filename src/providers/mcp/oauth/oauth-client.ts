import type { AuthorizationServer } from './metadata.ts';
import { OAuthFailure } from './oauth-failure.ts';
import type { OAuthWeb } from './oauth-web.ts';

const authentications = ['none', 'client_secret_basic', 'client_secret_post'] as const;
export type ClientAuthentication = (typeof authentications)[number];

/** Who this service is at an authorization server. */
export interface OAuthClient {
  readonly id: string;
  readonly authentication: ClientAuthentication;
  /** What the server has made; null: there is none, or a configuration key names it. */
  readonly secret: string | null;
  /** True: a configuration key of the record names the secret. */
  readonly hasConfiguredSecret: boolean;
  /** Milliseconds since 1970; null: it does not lapse. */
  readonly secretExpiresAt: number | null;
}

/** It stands in the address of each consent, of which no browser takes more. */
const maxIdLength = 2048;

const known = (value: unknown): ClientAuthentication | undefined => authentications.find((one) => one === value);

/** How a client with a secret says who it is. */
const withSecret = ({ clientAuthentication }: AuthorizationServer, step: 'registration' | 'token') => {
  for (const one of ['client_secret_basic', 'client_secret_post'] as const)
    if (clientAuthentication.includes(one)) return one;
  throw new OAuthFailure(step, 'no-client-authentication');
};

export const configuredClient = (
  server: AuthorizationServer,
  id: string,
  hasConfiguredSecret: boolean,
): OAuthClient => ({
  id,
  authentication: hasConfiguredSecret ? withSecret(server, 'token') : 'none',
  secret: null,
  hasConfiguredSecret,
  secretExpiresAt: null,
});

/** Registers this service (RFC 7591). Throws OAuthFailure. */
export const registerClient = async (
  web: OAuthWeb,
  server: AuthorizationServer,
  { redirectUri, scope }: { readonly redirectUri: string; readonly scope: string | null },
): Promise<OAuthClient> => {
  const step = 'registration';
  if (server.registrationEndpoint === null) throw new OAuthFailure(step, 'no-client');
  const asked = server.clientAuthentication.includes('none') ? 'none' : withSecret(server, step);
  const { status, body } = await web.post(new URL(server.registrationEndpoint), step, {
    client_name: 'acp',
    application_type: 'web',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: asked,
    ...(scope === null ? {} : { scope }),
  });
  if (status !== 200 && status !== 201) throw new OAuthFailure(step, 'refused', { status });
  const { client_id: id, client_secret: secret, client_secret_expires_at: expiry } = body ?? {};
  if (typeof id !== 'string' || id === '' || id.length > maxIdLength)
    throw new OAuthFailure(step, 'incomplete', { status });
  const given = body?.['token_endpoint_auth_method'];
  // It may decide otherwise than it was asked.
  const authentication = given === undefined || given === null ? asked : known(given);
  if (authentication === undefined) throw new OAuthFailure(step, 'no-client-authentication');
  if (authentication !== 'none' && typeof secret !== 'string') throw new OAuthFailure(step, 'incomplete', { status });
  return {
    id,
    authentication,
    secret: authentication === 'none' ? null : String(secret),
    hasConfiguredSecret: false,
    secretExpiresAt: typeof expiry === 'number' && expiry > 0 ? expiry * 1000 : null,
  };
};
