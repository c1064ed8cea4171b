import { createHash, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';

type Json = Readonly<Record<string, unknown>>;

interface Code {
  readonly client: string;
  readonly challenge: string;
  readonly redirectUri: string;
  readonly resource: string;
}

interface Client {
  readonly secret: string | null;
  readonly redirectUris: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An authorization server of OAuth 2.1 that keeps to the letter what it may refuse: PKCE, resources, codes that count once, rotation. */
export interface AuthorizationServer extends LoopbackServer {
  readonly issuer: string;
  /** Seconds that its tokens say they hold; null: it does not say. */
  expiresIn: unknown;
  /** Seconds since 1970 at which secrets of clients end that register; 0: they do not. */
  secretsEndAt: number;
  /** Members laid over its metadata. */
  metadata: Json;
  /** Answers in place of its own, by path. */
  readonly instead: Map<string, (request: ReceivedRequest) => Answer | Promise<Answer>>;
  /** Members that its answer to a person's browser carries in place of its own; undefined leaves one out. */
  answerWith: Readonly<Record<string, string | undefined>>;
  know(client: string, secret: string | null, redirectUri: string): void;
  /** What a person does who agrees: where their browser is sent. */
  agree(authorizationUri: string): Promise<URL>;
  /** Whether a token counts for a resource. */
  admits(authorization: string | undefined, resource: string): boolean;
  /** Tokens that were given so far end now, as far as their resource is concerned. */
  endTokens(): void;
  /** Forms that came to the token endpoint, in order. */
  readonly asked: URLSearchParams[];
  readonly revoked: string[];
  readonly registered: Json[];
}

const form = ({ body }: ReceivedRequest): URLSearchParams => new URLSearchParams(body);
const wrong = (error: string, status = 400): Answer => ({ status, body: { error } });

export const startAuthorizationServer = async (t: TestContext): Promise<AuthorizationServer> => {
  const clients = new Map<string, Client>();
  const codes = new Map<string, Code>();
  const access = new Map<string, string>();
  const refresh = new Map<string, Omit<Code, 'challenge' | 'redirectUri'>>();
  const asked: URLSearchParams[] = [];
  const revoked: string[] = [];
  const registered: Json[] = [];

  const metadata = (): Json => ({
    issuer: own.issuer,
    authorization_endpoint: `${own.issuer}/authorize`,
    token_endpoint: `${own.issuer}/token`,
    registration_endpoint: `${own.issuer}/register`,
    revocation_endpoint: `${own.issuer}/revoke`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
    authorization_response_iss_parameter_supported: true,
    ...own.metadata,
  });

  const register = ({ body }: ReceivedRequest): Answer => {
    const asks = JSON.parse(body) as { redirect_uris: string[]; token_endpoint_auth_method: string };
    registered.push(asks as unknown as Json);
    const id = `client-${registered.length}`;
    const secret = asks.token_endpoint_auth_method === 'none' ? null : `made-${randomUUID()}`;
    clients.set(id, { secret, redirectUris: asks.redirect_uris });
    const made = secret === null ? {} : { client_secret: secret, client_secret_expires_at: own.secretsEndAt };
    return { status: 201, body: { ...asks, client_id: id, ...made } };
  };

  const authorize = (url: URL): Answer => {
    const value = (name: string): string => url.searchParams.get(name) ?? '';
    const client = clients.get(value('client_id'));
    if (client?.redirectUris.includes(value('redirect_uri')) !== true) return wrong('invalid_request');
    if (value('response_type') !== 'code' || value('code_challenge_method') !== 'S256') return wrong('invalid_request');
    const code = randomUUID();
    codes.set(code, {
      client: value('client_id'),
      challenge: value('code_challenge'),
      redirectUri: value('redirect_uri'),
      resource: value('resource'),
    });
    const to = new URL(value('redirect_uri'));
    const answer = { code, state: value('state'), iss: own.issuer, ...own.answerWith };
    for (const [name, text] of Object.entries(answer)) if (text !== undefined) to.searchParams.set(name, text);
    return { status: 302, headers: { location: to.href } };
  };

  /** Null: nobody that is known here. */
  const clientOf = ({ headers }: ReceivedRequest, fields: URLSearchParams): string | null => {
    const [, basic] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? [];
    const [id = '', secret = null] =
      basic === undefined
        ? [fields.get('client_id') ?? '', fields.get('client_secret')]
        : Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
    const known = clients.get(id);
    return known !== undefined && known.secret === secret ? id : null;
  };

  const given = (client: string, resource: string): Answer => {
    const token = `access-${randomUUID()}`;
    const renewal = `refresh-${randomUUID()}`;
    access.set(token, resource);
    refresh.set(renewal, { client, resource });
    const body = { access_token: token, token_type: 'Bearer', refresh_token: renewal };
    return { status: 200, body: own.expiresIn === null ? body : { ...body, expires_in: own.expiresIn } };
  };

  const token = (request: ReceivedRequest): Answer => {
    const fields = form(request);
    asked.push(fields);
    const client = clientOf(request, fields);
    if (client === null) return wrong('invalid_client', 401);
    if (fields.get('grant_type') === 'authorization_code') {
      const code = codes.get(fields.get('code') ?? '');
      codes.delete(fields.get('code') ?? '');
      const challenge = createHash('sha256')
        .update(fields.get('code_verifier') ?? '')
        .digest('base64url');
      if (code === undefined || code.client !== client || code.challenge !== challenge) return wrong('invalid_grant');
      if (code.redirectUri !== fields.get('redirect_uri')) return wrong('invalid_grant');
      return code.resource === fields.get('resource') ? given(client, code.resource) : wrong('invalid_target');
    }
    const renewal = fields.get('refresh_token') ?? '';
    const before = refresh.get(renewal);
    // Each counts once.
    refresh.delete(renewal);
    if (before === undefined || before.client !== client) return wrong('invalid_grant');
    return before.resource === fields.get('resource') ? given(client, before.resource) : wrong('invalid_target');
  };

  const revoke = (request: ReceivedRequest): Answer => {
    const fields = form(request);
    if (clientOf(request, fields) === null) return wrong('invalid_client', 401);
    const value = fields.get('token') ?? '';
    revoked.push(value);
    access.delete(value);
    refresh.delete(value);
    return { status: 200 };
  };

  const answer = (request: ReceivedRequest): Answer | Promise<Answer> => {
    const url = new URL(request.url, own.issuer);
    const instead = own.instead.get(url.pathname);
    if (instead !== undefined) return instead(request);
    if (url.pathname === '/.well-known/oauth-authorization-server') return { status: 200, body: metadata() };
    if (url.pathname === '/register') return register(request);
    if (url.pathname === '/authorize') return authorize(url);
    if (url.pathname === '/token') return token(request);
    return url.pathname === '/revoke' ? revoke(request) : { status: 404 };
  };

  const server = await startServer(async (request, response: ServerResponse) => {
    const { status, body, headers } = await answer(request);
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body));
  });
  t.after(() => server.close());

  const own: AuthorizationServer = {
    ...server,
    issuer: server.url,
    expiresIn: 3600,
    secretsEndAt: 0,
    metadata: {},
    instead: new Map(),
    answerWith: {},
    asked,
    revoked,
    registered,
    know: (client, secret, redirectUri) => void clients.set(client, { secret, redirectUris: [redirectUri] }),
    async agree(authorizationUri) {
      const answered = await fetch(authorizationUri, { redirect: 'manual' });
      return new URL(answered.headers.get('location') ?? 'about:blank');
    },
    admits: (authorization, resource) => access.get(/^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '') === resource,
    endTokens: () => access.clear(),
  };
  return own;
};
