import type { BearerChallenge } from './challenge.ts';
import { OAuthFailure, type OAuthStep } from './oauth-failure.ts';
import type { JsonObject, OAuthWeb } from './oauth-web.ts';

/** Who gives tokens for a server, as RFC 9728 and RFC 8414 have it. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly registrationEndpoint: string | null;
  readonly revocationEndpoint: string | null;
  /** Ways in which clients say who they are at the token endpoint. */
  readonly clientAuthentication: readonly string[];
  readonly scopes: readonly string[];
  /** It promises to name itself in its answers (RFC 9207). */
  readonly namesItself: boolean;
}

export interface Discovered {
  readonly server: AuthorizationServer;
  /** What tokens are asked for (RFC 8707): the server as it names itself, to the letter. */
  readonly resource: string;
  /** Scopes that the resource knows; empty: it does not say. */
  readonly resourceScopes: readonly string[];
}

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];

const isMissing = (status: number): boolean => status >= 400 && status < 500;

/** The first of these addresses that has a document; null: none has. */
const firstDocument = async (web: OAuthWeb, urls: readonly URL[], step: OAuthStep): Promise<JsonObject | null> => {
  for (const url of urls) {
    const { status, body } = await web.get(url, step);
    if (status === 200 && body !== null) return body;
    // A redirect is not followed: whoever it leads to would speak for the server.
    if (!isMissing(status)) throw new OAuthFailure(step, status === 200 ? 'not-json' : 'status', { status });
  }
  return null;
};

const pathOf = ({ pathname }: URL): string => (pathname === '/' ? '' : pathname.replace(/\/$/, ''));

/** RFC 9728, section 3.1, and then the one of the whole host. */
const wellKnownOfResource = (endpoint: URL): readonly URL[] => {
  const name = '/.well-known/oauth-protected-resource';
  const own = new URL(`${name}${pathOf(endpoint)}${endpoint.search}`, endpoint.origin);
  return pathOf(endpoint) === '' && endpoint.search === '' ? [own] : [own, new URL(name, endpoint.origin)];
};

/** Whether metadata are of this server: of its address, or of one above it on the same host. */
const isOfResource = (value: unknown, endpoint: URL): value is string => {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const named = new URL(value);
  if (named.origin !== endpoint.origin || (named.search !== '' && named.search !== endpoint.search)) return false;
  return `${pathOf(endpoint)}/`.startsWith(`${pathOf(named)}/`);
};

/** RFC 8414, section 3, and OpenID Connect Discovery; of an issuer with a path in both their ways. */
const wellKnownOfIssuer = (issuer: URL): readonly URL[] => {
  const path = pathOf(issuer);
  const at = (pathname: string): URL => new URL(pathname, issuer.origin);
  const inserted = [
    at(`/.well-known/oauth-authorization-server${path}`),
    at(`/.well-known/openid-configuration${path}`),
  ];
  return path === '' ? inserted : [...inserted, at(`${path}/.well-known/openid-configuration`)];
};

const serverOf = (document: JsonObject, issuer: string, web: OAuthWeb): AuthorizationServer => {
  const step = 'server-metadata';
  // To the letter: whoever stands at this address could otherwise speak for another one.
  if (document['issuer'] !== issuer) throw new OAuthFailure(step, 'wrong-issuer');
  if (!texts(document['code_challenge_methods_supported']).includes('S256')) throw new OAuthFailure(step, 'no-pkce');
  const address = (name: string): string => web.address(document[name], step).href;
  const optional = (name: string): string | null =>
    document[name] === undefined || document[name] === null ? null : address(name);
  const methods = document['token_endpoint_auth_methods_supported'];
  return {
    issuer,
    authorizationEndpoint: address('authorization_endpoint'),
    tokenEndpoint: address('token_endpoint'),
    registrationEndpoint: optional('registration_endpoint'),
    revocationEndpoint: optional('revocation_endpoint'),
    // RFC 8414 says what a server means that does not say it.
    clientAuthentication: methods === undefined ? ['client_secret_basic'] : texts(methods),
    scopes: texts(document['scopes_supported']),
    namesItself: document['authorization_response_iss_parameter_supported'] === true,
  };
};

/**
 * Finds out who gives tokens for a server: a fixed number of documents, whatever they say of each other. Throws OAuthFailure.
 */
export const discoverAuthorizationServer = async (
  web: OAuthWeb,
  endpoint: URL,
  { resourceMetadata }: Pick<BearerChallenge, 'resourceMetadata'>,
): Promise<Discovered> => {
  const told = resourceMetadata === null ? [] : [web.address(resourceMetadata, 'resource-metadata')];
  const resource = await firstDocument(web, [...told, ...wellKnownOfResource(endpoint)], 'resource-metadata');
  if (resource === null) throw new OAuthFailure('resource-metadata', 'no-authorization-server');
  const named = resource['resource'];
  if (!isOfResource(named, endpoint)) throw new OAuthFailure('resource-metadata', 'wrong-resource');
  const [issuer] = texts(resource['authorization_servers']);
  if (issuer === undefined) throw new OAuthFailure('resource-metadata', 'no-authorization-server');
  const issuerUrl = web.address(issuer, 'server-metadata');
  const document = await firstDocument(web, wellKnownOfIssuer(issuerUrl), 'server-metadata');
  if (document === null) throw new OAuthFailure('server-metadata', 'status', { status: 404 });
  return {
    server: serverOf(document, issuer, web),
    resource: named,
    resourceScopes: texts(resource['scopes_supported']),
  };
};
