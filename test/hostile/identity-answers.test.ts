// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { mcpSetup, save } from '../features/mcp-servers/mcp-world.ts';
import { callback, callbackBase, oauthSetup, params, queryOf, start } from '../features/mcp-servers/oauth-world.ts';
import { type LoopbackServer, startServer } from '../providers/http/loopback-server.ts';
import { overHttp } from '../support/app.ts';
import { allExcesses } from './hostile-answers.ts';

type Documents = (url: string) => Readonly<Record<string, object>>;

/** A server that answers each path with its document, or with the hostile one. */
const documentServer = async (t: TestContext, documents: Documents) => {
  let hostile: { readonly path: string; readonly document: Buffer } | null = null;
  const server: LoopbackServer = await startServer((request, response) => {
    const path = request.url?.split('?', 1)[0] ?? '';
    const own = documents(server.url)[path];
    const status = own === undefined ? (path === '/mcp' ? 401 : 404) : path === '/register' ? 201 : 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(hostile?.path === path ? hostile.document : JSON.stringify(own ?? {}));
  });
  t.after(() => server.close());
  const { url } = server;
  return {
    url,
    /** The document of this path with the hostile part in a property. */
    template: (path: string, property: string): string => JSON.stringify({ ...documents(url)[path], [property]: '*' }),
    answer(path: string, document: Buffer | null): void {
      hostile = document === null ? null : { path, document };
    },
  };
};

const maxDocumentBytes = 262_144;

overHttp('no document of an authorization server stops the event loop for long', async (open, t) => {
  const resourcePath = '/.well-known/oauth-protected-resource/mcp';
  const issuerPath = '/.well-known/oauth-authorization-server';
  const server = await documentServer(t, (url) => ({
    [resourcePath]: { resource: `${url}/mcp`, authorization_servers: [url], scopes_supported: ['tools'] },
    [issuerPath]: {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
    },
    '/register': { client_id: 'client-1', redirect_uris: [`${callbackBase}/api/mcp-servers/weather/oauth/callback`] },
    '/token': { access_token: 'a', token_type: 'Bearer' },
  }));
  const { client } = await open(oauthSetup());
  const begun = async () => {
    await client.mcpServers.remove({ params }).catch(() => null);
    await save(client, `${server.url}/mcp`, { oauthEnabled: true });
  };
  const agreed = async (document: Buffer | null) => {
    server.answer('', null);
    await begun();
    const { state } = queryOf(new URL((await start(client)).authorizationUri));
    server.answer('/token', document);
    return callback(client, { code: 'c', state });
  };
  // The flow works as it is.
  assert.equal((await agreed(null)).status, 200);
  const found = await allExcesses([
    ...(
      [
        [resourcePath, 'authorization_servers'],
        [resourcePath, 'scopes_supported'],
        [resourcePath, 'unknown'],
        [issuerPath, 'scopes_supported'],
        [issuerPath, 'code_challenge_methods_supported'],
        [issuerPath, 'token_endpoint_auth_methods_supported'],
        [issuerPath, 'authorization_endpoint'],
        ['/register', 'unknown'],
        ['/register', 'client_id'],
      ] as const
    ).map(([path, property]) => ({
      what: `a document at ${path}`,
      template: server.template(path, property),
      bytes: maxDocumentBytes,
      async ask(document: Buffer) {
        await begun();
        server.answer(path, document);
        await start(client);
      },
    })),
    ...['unknown', 'scope', 'access_token', 'expires_in', 'error_description'].map((property) => ({
      what: 'a token answer',
      template: server.template('/token', property),
      bytes: maxDocumentBytes,
      ask: agreed,
    })),
  ]);
  assert.deepEqual(found, []);
});

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

overHttp('no keys of an identity provider stop the event loop for long', async (open, t) => {
  const discovery = '/.well-known/openid-configuration';
  const server = await documentServer(t, (url) => ({
    [discovery]: { issuer: url, jwks_uri: `${url}/keys` },
    '/keys': { keys: [] },
  }));
  const app = await open(mcpSetup({ host: { Oidc: { Issuer: server.url, Audience: 'acp', RoleClaim: 'roles' } } }));
  const token = `${part({ alg: 'RS256', kid: 'k' })}.${part({ iss: server.url, aud: 'acp', exp: 4e9, sub: 'a' })}.c2ln`;
  const ask = (path: string) => async (document: Buffer) => {
    server.answer(path, document);
    // Beyond the time for which keys are used, and the pause after a failure.
    await app.clock.jump(2 * 60 * 60_000);
    const { status } = await fetch(`${app.url}/api/agents`, { headers: { authorization: `Bearer ${token}` } });
    assert.ok(status === 401 || status === 503, String(status));
  };
  const found = await allExcesses([
    ...['jwks_uri', 'unknown'].map((property) => ({
      what: 'a discovery document',
      template: server.template(discovery, property),
      ask: ask(discovery),
      bytes: maxDocumentBytes,
    })),
    ...[
      '{"keys":"*"}',
      '{"keys":[],"unknown":"*"}',
      '{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","e":"AQAB","n":"*"}]}',
      '{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","e":"AQAB","n":"AQAB","x5c":"*"}]}',
    ].map((template) => ({ what: 'keys', template, ask: ask('/keys'), bytes: maxDocumentBytes })),
  ]);
  assert.deepEqual(found, []);
});
