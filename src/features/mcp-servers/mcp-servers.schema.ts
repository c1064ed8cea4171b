import Type, { type Static } from 'typebox';
import { closed, Labels, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

export const serverNamePattern = '^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$';

export const serverStates = [
  'Unknown',
  'Connected',
  'Unreachable',
  'AuthorizationRequired',
  'MissingCredential',
  'Refused',
  'Disabled',
] as const;
export type McpServerState = (typeof serverStates)[number];

const Transport = oneOf(['StreamableHttp', 'Sse']);
const Protocol = oneOf(['Auto', 'Stateless', 'Handshake']);
const Pinning = oneOf(['Off', 'Warn', 'Block'], {
  description:
    'What happens where a tool is not as it was approved. Warn: it is told. Block: it cannot be called. Default Warn',
});
const Effect = oneOf(['Read', 'Write', 'Destructive', 'External']);
const ToolNames = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 1000 });
const key = (of: string) => Type.String({ minLength: 1, maxLength: 256, description: `Configuration key of ${of}` });

const members = {
  endpoint: Type.String({ minLength: 1, maxLength: 2048, description: 'Absolute, http or https' }),
  description: nullable(Type.String({ maxLength: 2000 })),
  transport: Transport,
  protocol: Protocol,
  authorizationConfigurationKey: nullable(key('the whole Authorization header')),
  headers: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
    maxProperties: 20,
    description: 'Sent with every request; no place for credentials',
  }),
  enabled: Type.Boolean(),
  requiresApproval: Type.Boolean({ description: 'Whether a person is asked before a tool is called. Default true' }),
  tools: nullable(
    closed({
      include: Type.Optional(nullable(ToolNames, { description: 'Names as the server gives them; null: all' })),
      exclude: Type.Optional(nullable(ToolNames, { description: 'Left out of those' })),
    }),
    { description: 'Which tools are taken; null: all' },
  ),
  pinning: Pinning,
  effects: Type.Record(Type.String({ maxLength: 256 }), Effect, {
    maxProperties: 1000,
    description:
      'What tools do, by the names that the server gives them, where its own annotations are not to be believed',
  }),
  oauthEnabled: Type.Boolean(),
  oauthClientId: nullable(Type.String({ minLength: 1, maxLength: 2048 })),
  oauthClientSecretConfigurationKey: nullable(key('the secret of the OAuth client')),
  oauthScopes: nullable(Type.String({ maxLength: 2000, description: 'Separated by spaces' })),
  oauthAuthorizationMode: oneOf(['AuthorizationCode']),
  labels: Labels,
};

const { endpoint, ...others } = members;

export const McpServerRequest = closed(
  { endpoint, ...Type.Partial(Type.Object(others)).properties },
  { title: 'McpServerRequest' },
);
export type McpServerRequest = Static<typeof McpServerRequest>;

export const McpServerDefinition = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    name: Type.String(),
    ...members,
    endpoint: Type.String({ description: 'Of a program that the host starts: stdio:{name}' }),
    transport: oneOf(['StreamableHttp', 'Sse', 'Stdio']),
    status: Type.Object({
      state: oneOf(serverStates),
      protocolVersion: nullable(Type.String()),
      serverName: nullable(Type.String({ description: 'What the server calls itself' })),
      toolCount: Type.Integer({ minimum: 0 }),
      droppedTools: Type.Integer({ minimum: 0, description: 'Tools beyond Mcp:MaxToolsPerServer' }),
      checkedAt: nullable(Time),
      pin: oneOf(['None', 'Same', 'Changed'], {
        description: 'How what the server lists compares with what was approved. None: nothing was',
      }),
    }),
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'McpServerDefinition' },
);
export type McpServerDefinition = Static<typeof McpServerDefinition>;

export const McpRefreshResponse = Type.Object(
  {
    toolCount: Type.Integer({ minimum: 0, description: 'Remote tools that agents of the tenant can have now' }),
    servers: Type.Array(
      Type.Object({
        name: Type.String(),
        state: oneOf(serverStates),
        toolCount: Type.Integer({ minimum: 0 }),
        droppedTools: Type.Integer({ minimum: 0 }),
        clashes: Type.Array(Type.String(), { description: 'Tools whose name another tool has' }),
        refused: Type.Array(Type.Object({ tool: Type.String(), reason: Type.String() }), {
          description: 'Tools that cannot be offered as the server describes them',
        }),
      }),
    ),
  },
  { title: 'McpRefreshResponse' },
);
export type McpRefreshResponse = Static<typeof McpRefreshResponse>;

export const McpCheckStep = Type.Object(
  {
    step: oneOf(['Name', 'Address', 'Connection', 'Tls', 'Credential', 'Protocol', 'Tools']),
    outcome: oneOf(['Passed', 'Warning', 'Failed', 'Skipped']),
    detail: Type.String(),
    mend: nullable(Type.String({ description: 'What helps' })),
  },
  { title: 'McpCheckStep' },
);
export type McpCheckStep = Static<typeof McpCheckStep>;

export const McpOAuthStartResponse = Type.Object(
  {
    authorizationUri: Type.String({ description: 'For the browser of the person who agrees' }),
    state: Type.String(),
    expiresAt: Time,
  },
  { title: 'McpOAuthStartResponse' },
);

export const McpPromptSummary = Type.Object(
  {
    name: Type.String(),
    title: nullable(Type.String()),
    description: nullable(Type.String()),
    arguments: Type.Array(
      Type.Object({ name: Type.String(), description: nullable(Type.String()), required: Type.Boolean() }),
    ),
  },
  { title: 'McpPromptSummary' },
);
export type McpPromptSummary = Static<typeof McpPromptSummary>;

export const McpPromptArgumentsRequest = closed(
  {
    arguments: Type.Optional(
      nullable(Type.Record(Type.String(), Type.String({ maxLength: 65_536 }), { maxProperties: 1000 })),
    ),
  },
  { title: 'McpPromptArgumentsRequest' },
);

export const McpPromptContent = Type.Object(
  { text: Type.String(), hash: Type.String({ description: 'SHA-256 of the text, in lower-case hex' }) },
  { title: 'McpPromptContent' },
);
export type McpPromptContent = Static<typeof McpPromptContent>;

export const McpResourceSummary = Type.Object(
  {
    uri: Type.String(),
    name: Type.String(),
    title: nullable(Type.String()),
    mimeType: nullable(Type.String()),
    description: nullable(Type.String()),
    size: nullable(Type.Integer()),
  },
  { title: 'McpResourceSummary' },
);
export type McpResourceSummary = Static<typeof McpResourceSummary>;

export const McpResourceContent = Type.Object(
  {
    uri: Type.String(),
    mimeType: nullable(Type.String()),
    text: nullable(Type.String()),
    isBinary: Type.Boolean(),
    byteSize: Type.Integer({ description: 'Before it was cut' }),
    truncated: Type.Boolean(),
  },
  { title: 'McpResourceContent' },
);
export type McpResourceContent = Static<typeof McpResourceContent>;

const PinnedTool = Type.Object({
  description: nullable(Type.String()),
  inputSchema: Type.String({ description: 'JSON' }),
  annotations: Type.String({ description: 'JSON' }),
});

export const McpPinReport = Type.Object(
  {
    pinned: Type.Boolean({ description: 'Whether anything was approved' }),
    pinnedAt: nullable(Time),
    pinnedBy: nullable(Type.String()),
    hash: nullable(Type.String({ description: 'Of what the server lists now; null: nothing was listed yet' })),
    pinnedHash: nullable(Type.String()),
    changes: Type.Array(
      Type.Object({
        tool: Type.String({ description: 'As the server calls it; empty: the server itself' }),
        change: oneOf(['Added', 'Removed', 'Changed', 'Renamed']),
        from: nullable(Type.String({ description: 'Its name before' })),
        before: nullable(PinnedTool),
        after: nullable(PinnedTool),
      }),
    ),
  },
  { title: 'McpPinReport' },
);
export type McpPinReport = Static<typeof McpPinReport>;

export const McpApproveRequest = closed(
  {
    hash: Type.Optional(
      nullable(Type.String({ maxLength: 64 }), {
        description: 'Of what was looked at: 409 where the server lists something else by now',
      }),
    ),
  },
  { title: 'McpApproveRequest' },
);
