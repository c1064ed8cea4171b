import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import {
  McpApproveRequest,
  McpOAuthStartResponse,
  McpPinReport,
  McpPromptArgumentsRequest,
  McpPromptContent,
  McpPromptSummary,
  McpRefreshResponse,
  McpResourceContent,
  McpResourceSummary,
  McpServerDefinition,
  McpServerRequest,
  serverNamePattern,
} from './mcp-servers.schema.ts';

const read = { tag: 'MCP', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'MCP', role: 'Admin', scope: 'PlatformAdmin' } as const;

const ServerName = Type.Object({ name: Type.String() });
const oauth = { tag: 'MCP', role: 'Admin', scope: 'SecurityAdmin', params: ServerName } as const;
/** As it came: what is no text, or there twice, is answered like what is wrong. */
const answer = (description: string) => Type.Optional(Type.Unsafe<unknown>({ description }));
const columns = ['name', 'endpoint', 'enabled', 'status.state', 'status.toolCount', 'status.pin', 'status.checkedAt'];
const remoteErrors = [
  'not-found',
  'mcp-authorization-required',
  'mcp-server-disabled',
  'mcp-disabled',
  'mcp-server-failed',
] as const;

export const mcpServerOperations = defineOperations({
  list: {
    ...read,
    path: '/api/mcp-servers',
    summary: 'List the MCP servers of the tenant, by name',
    description:
      'Each comes with what the last look at it came to. Names of configuration keys are shown, secrets never.',
    responses: { 200: Type.Array(McpServerDefinition) },
    errors: [],
    cli: { command: 'mcp list', columns },
  },
  get: {
    ...read,
    path: '/api/mcp-servers/{name}',
    summary: 'Show an MCP server',
    description:
      'The answer tells whether it was reached, in which revision of the protocol, and how many tools it has.',
    params: ServerName,
    responses: { 200: McpServerDefinition },
    errors: ['not-found'],
    cli: { command: 'mcp get' },
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/mcp-servers/{name}',
    summary: 'Create or replace an MCP server',
    description:
      'The whole record is replaced; its id and what was approved of its tools stay. The server is asked for its tools at the next look, or when a refresh asks for one.',
    params: Type.Object({ name: Type.String({ pattern: serverNamePattern }) }),
    body: McpServerRequest,
    responses: { 200: McpServerDefinition },
    errors: ['configuration-key-not-allowed', 'target-not-allowed'],
    audit: { action: 'mcp-server.save', entity: 'mcp-server', mode: 'noted' },
    cli: { command: 'mcp save' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/mcp-servers/{name}',
    summary: 'Delete an MCP server',
    description: 'Agents that name its tools stay as they are, and do not compile any more. The server is not called.',
    params: ServerName,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'mcp-server.delete', entity: 'mcp-server', mode: 'noted' },
    cli: { command: 'mcp delete', done: 'Deleted MCP server {name}.' },
  },
  refresh: {
    tag: 'MCP',
    role: 'Operator',
    scope: 'PlatformAdmin',
    method: 'POST',
    path: '/api/mcp-servers/refresh',
    summary: 'Ask MCP servers for their tools now',
    description:
      'One that cannot be reached loses its tools until a later look succeeds; the answer says so, and which tools are not offered and why.',
    query: Type.Object({ name: Type.Optional(Type.String({ description: 'Default: all enabled ones' })) }),
    responses: { 200: McpRefreshResponse },
    errors: ['not-found', 'mcp-disabled'],
    cli: { command: 'mcp refresh' },
  },
  pin: {
    ...read,
    path: '/api/mcp-servers/{name}/pin',
    summary: 'Show what of an MCP server is not as it was approved',
    description:
      'Compared are the name that the server gives itself, and names, descriptions, schemas and annotations of its tools.',
    params: ServerName,
    responses: { 200: McpPinReport },
    errors: ['not-found'],
    cli: { command: 'mcp diff' },
  },
  approve: {
    ...write,
    method: 'POST',
    path: '/api/mcp-servers/{name}/approve',
    summary: 'Approve what an MCP server lists now',
    description:
      'From then on a tool that changes is told of, or with the pinning Block not called before it is approved again.',
    params: ServerName,
    body: Type.Optional(McpApproveRequest),
    responses: { 200: McpServerDefinition },
    errors: ['not-found', 'mcp-catalog-changed'],
    audit: { action: 'mcp-server.approve', entity: 'mcp-server', mode: 'noted' },
    cli: { command: 'mcp approve' },
  },
  prompts: {
    ...read,
    path: '/api/mcp-servers/{name}/prompts',
    summary: 'List the prompts of an MCP server',
    description: 'The server is asked now. One that has no prompts answers with none.',
    params: ServerName,
    responses: { 200: Type.Array(McpPromptSummary) },
    errors: [...remoteErrors],
    cli: { command: 'mcp prompts', columns: ['name', 'title', 'description'] },
  },
  prompt: {
    ...read,
    method: 'POST',
    path: '/api/mcp-servers/{name}/prompts/{prompt}',
    summary: 'Fill a prompt of an MCP server',
    description:
      'The answer is the text of all its messages, for an author to copy; nothing asks for it again when an agent runs. An agent keeps the hash under the metadata key mcp.prompt.hash.',
    params: Type.Object({ name: Type.String(), prompt: Type.String() }),
    body: Type.Optional(McpPromptArgumentsRequest),
    responses: { 200: McpPromptContent },
    errors: [...remoteErrors],
    cli: { command: 'mcp prompt' },
  },
  resources: {
    ...read,
    path: '/api/mcp-servers/{name}/resources',
    summary: 'List the resources of an MCP server',
    description: 'The server is asked now, for at most 1000 of them. One that has no resources answers with none.',
    params: ServerName,
    responses: { 200: Type.Array(McpResourceSummary) },
    errors: [...remoteErrors],
    cli: { command: 'mcp resources', columns: ['uri', 'name', 'mimeType', 'size', 'description'] },
  },
  readResource: {
    ...read,
    path: '/api/mcp-servers/{name}/resources/read',
    summary: 'Read a resource of an MCP server',
    description: 'Only what the server lists is asked for.',
    params: ServerName,
    query: Type.Object({ uri: Type.String({ minLength: 1, maxLength: 4096 }) }),
    responses: { 200: McpResourceContent },
    errors: [...remoteErrors, 'resource-not-listed'],
    cli: { command: 'mcp read' },
  },
  oauthStart: {
    ...oauth,
    method: 'POST',
    path: '/api/mcp-servers/{name}/oauth/start',
    summary: 'Begin to authorize this service at an MCP server',
    description:
      'A person opens the address of the answer, agrees there, and comes back to this service; within ten minutes, and once.',
    responses: { 200: McpOAuthStartResponse },
    errors: [
      'not-found',
      'oauth-not-enabled',
      'oauth-callback-not-configured',
      'oauth-client-missing',
      'mcp-server-disabled',
      'mcp-disabled',
      'mcp-server-failed',
    ],
    audit: { action: 'mcp-server.oauth-start', entity: 'mcp-server', mode: 'noted' },
    cli: { command: 'mcp authorize' },
  },
  oauthDisconnect: {
    ...oauth,
    method: 'DELETE',
    path: '/api/mcp-servers/{name}/oauth',
    summary: 'Forget the tokens of an MCP server',
    description: 'Where its authorization server takes tokens back, they are given back to it as well.',
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'mcp-server.oauth-disconnect', entity: 'mcp-server', mode: 'noted' },
    cli: { command: 'mcp disconnect', done: 'Disconnected MCP server {name}.' },
  },
  oauthCallback: {
    tag: 'MCP',
    role: null,
    scope: null,
    method: 'GET',
    path: '/api/mcp-servers/{name}/oauth/callback',
    summary: 'Where people come back from an authorization server',
    description:
      'No credential is asked for: the state says whose answer it is, and counts once. The page that is answered is the same whatever the query says.',
    params: ServerName,
    query: Type.Object({
      code: answer('What tokens are given for'),
      state: answer('Of the answer to the start'),
      iss: answer('Who answers (RFC 9207)'),
      error: answer('Why it was refused'),
    }),
    page: true,
    callsPerMinute: 30,
    responses: { 200: Type.String(), 400: Type.String() },
    errors: ['rate-limited', 'store-unavailable'],
    audit: { action: 'mcp-server.oauth-connected', entity: 'mcp-server', mode: 'noted' },
    cli: { handWritten: true },
  },
});
