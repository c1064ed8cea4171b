import Type, { type Static } from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { JsonValue } from '../../contract/schema.ts';

const header = (description: string) => Type.Optional(Type.String({ description }));

const where = {
  host: header('Host that the caller addressed'),
  'x-forwarded-host': header('Host that the caller addressed, as reported by a proxy'),
  'x-forwarded-proto': header('`https` behind a proxy that ends TLS'),
};

const McpHeaders = Type.Object({
  accept: header('application/json, and text/event-stream for progress'),
  'content-type': header('application/json'),
  origin: header('Sent by browsers: the origin of the service, or one of Host:AllowedOrigins'),
  'mcp-protocol-version': header('Version of the protocol; since 2026-07-28 the same as in the message'),
  'mcp-method': header('Since 2026-07-28: the method of the message'),
  'mcp-name': header('Since 2026-07-28: tool or task of the message'),
  ...where,
});
export type McpHeaders = Static<typeof McpHeaders>;

const ProtectedResource = Type.Object(
  {
    resource: Type.String({ description: 'Address of the endpoint' }),
    authorization_servers: Type.Array(Type.String()),
    bearer_methods_supported: Type.Array(Type.String()),
    resource_name: Type.String(),
  },
  { title: 'ProtectedResourceMetadata' },
);

export const mcpEndpointOperations = defineOperations({
  call: {
    tag: 'MCP',
    role: 'Operator',
    scope: 'ExternalInvoke',
    ownProtocol: true,
    resourceMetadata: '/mcp/.well-known/oauth-protected-resource',
    method: 'POST',
    path: '/mcp',
    summary: 'Send one message of the Model Context Protocol, which offers agents of the host as tools',
    description:
      'Available only if the host offers agents or operations (Host:McpServer), at the configured path. Serves 2026-07-28, and the versions with a handshake from 2025-03-26 on; protocol errors are JSON-RPC errors.',
    headers: McpHeaders,
    responses: { 200: JsonValue, 202: null, 400: JsonValue, 404: JsonValue },
    stream: Type.Object({ jsonrpc: Type.Literal('2.0') }),
    errors: [
      'origin-denied',
      'not-acceptable',
      'payload-too-large',
      'unsupported-media-type',
      'draining',
      'emergency-stopped',
      'store-unavailable',
    ],
    cli: { handWritten: true },
  },
  resource: {
    tag: 'MCP',
    role: null,
    scope: null,
    method: 'GET',
    path: '/mcp/.well-known/oauth-protected-resource',
    summary: 'Show the authorization servers of the Model Context Protocol endpoint (RFC 9728)',
    description: 'Available only with Host:Oidc; needs no credential.',
    headers: Type.Object(where),
    responses: { 200: ProtectedResource },
    errors: ['not-found'],
    cli: { handWritten: true },
  },
});
