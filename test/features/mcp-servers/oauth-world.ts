import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Client } from '../../../src/client/client.ts';
import type { AppSetup } from '../../support/app.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../../support/mcp/authorization-server.ts';
import { type Asked, mcpSetup, type RawServer, rawServer, save, tool, withTools } from './mcp-world.ts';

export const callbackBase = 'http://127.0.0.1:7070';
export const params = { name: 'weather' };

/** A service that people come back to at an address of nobody: tests carry the answer over themselves. */
export const oauthSetup = ({ service, ...more }: AppSetup = {}): AppSetup =>
  mcpSetup({
    ...more,
    service: {
      Egress: { AllowPrivateNetworkTargets: true },
      McpSecrets: { client: 's3cret-of-the-client' },
      ...service,
      Mcp: { OAuthCallbackBaseUri: callbackBase, ...(service?.['Mcp'] as object | undefined) },
    },
  });

export interface ProtectedServer {
  readonly server: RawServer;
  readonly issuer: AuthorizationServer;
  readonly endpoint: string;
  /** Answers in place of its metadata; null: there are none. */
  metadata: ((own: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> | null) | null;
  /** The challenge of a 401; default: one that names the metadata. */
  challenge: string | null;
  /** A scope without which calls of tools are refused. */
  wants: string | null;
  /** Calls of its protocol that came with a good token. */
  admitted(): readonly Asked[];
}

/** An MCP server that wants a token of its authorization server. */
export const protectedServer = async (t: TestContext): Promise<ProtectedServer> => {
  const issuer = await startAuthorizationServer(t);
  const admitted: Asked[] = [];
  const metadataPath = '/.well-known/oauth-protected-resource/mcp';
  const replies = withTools([tool('look')]);
  const server = await rawServer(t, (asked) => {
    const { request } = asked;
    if (request.url === metadataPath) {
      const own = { resource: server.endpoint, authorization_servers: [issuer.issuer], scopes_supported: ['tools'] };
      const document = world.metadata === null ? own : world.metadata(own);
      return {
        raw: (response) =>
          response
            .writeHead(document === null ? 404 : 200, { 'content-type': 'application/json' })
            .end(document === null ? '' : JSON.stringify(document)),
      };
    }
    if (!request.url.startsWith('/mcp')) return { raw: (response) => response.writeHead(404).end() };
    if (!issuer.admits(request.headers.authorization, server.endpoint)) {
      const challenge =
        world.challenge ?? `Bearer error="invalid_token", resource_metadata="${server.url}${metadataPath}"`;
      return { raw: (response) => response.writeHead(401, { 'www-authenticate': challenge }).end('{}') };
    }
    if (world.wants !== null && asked.method === 'tools/call') {
      const challenge = `Bearer error="insufficient_scope", scope="${world.wants}"`;
      return { raw: (response) => response.writeHead(403, { 'www-authenticate': challenge }).end('{}') };
    }
    admitted.push(asked);
    return replies(asked);
  });
  const world: ProtectedServer = {
    server,
    issuer,
    endpoint: server.endpoint,
    metadata: null,
    challenge: null,
    wants: null,
    admitted: () => admitted,
  };
  return world;
};

export const start = async (client: Client) => (await client.mcpServers.oauthStart({ params })).body;

/** What the browser of a person brings back. */
export const callback = (client: Client, query: Readonly<Record<string, unknown>>, name = 'weather') =>
  client.mcpServers.oauthCallback({ params: { name }, query });

export const queryOf = (url: URL): Record<string, string> => Object.fromEntries(url.searchParams);

/** Saved, agreed to by a person, and connected. */
export const authorized = async (
  client: Client,
  world: ProtectedServer,
  more: Parameters<typeof save>[2] = {},
): Promise<void> => {
  await save(client, world.endpoint, { oauthEnabled: true, ...more });
  const { authorizationUri } = await start(client);
  const back = await world.issuer.agree(authorizationUri);
  const { status } = await callback(client, queryOf(back));
  assert.equal(status, 200);
};
