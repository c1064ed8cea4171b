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
    'Behavior if a tool differs from its approved state. Warn: the change is reported. Block: the tool cannot be called. Default Warn',
});
const Effect = oneOf(['Read', 'Write', 'Destructive', 'External']);
const ToolNames = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 1000 });
const key = (of: string) =>
  Type.String({ minLength: 1, maxLength: 256, description: `Configuration key that holds ${of}` });

const members = {
  endpoint: Type.String({ minLength: 1, maxLength: 2048, description: 'Absolute, http or https' }),
  description: nullable(Type.String({ maxLength: 2000 })),
  transport: Transport,
  protocol: Protocol,
  authorizationConfigurationKey: nullable(key('the complete Authorization header')),
  headers: Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
    maxProperties: 20,
    description: 'Headers sent with every request; they must not contain credentials',
  }),
  enabled: Type.Boolean(),
  requiresApproval: Type.Boolean({ description: 'Whether tool calls need the approval of a person; default true' }),
  tools: nullable(
    closed({
      include: Type.Optional(nullable(ToolNames, { description: 'Names of tools at the server; null: all' })),
      exclude: Type.Optional(
        nullable(ToolNames, { description: 'Names of tools at the server to exclude from those' }),
      ),
    }),
    { description: 'Tools that agents can use; null: all' },
  ),
  pinning: Pinning,
  effects: Type.Record(Type.String({ maxLength: 256 }), Effect, {
    maxProperties: 1000,
    description: 'Effects of tools by their names at the server; they take precedence over its annotations',
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
    endpoint: Type.String({ description: 'For a program that the host starts: stdio:{name}' }),
    transport: oneOf(['StreamableHttp', 'Sse', 'Stdio']),
    status: Type.Object({
      state: oneOf(serverStates),
      protocolVersion: nullable(Type.String()),
      serverName: nullable(Type.String({ description: 'Name that the server reports' })),
      toolCount: Type.Integer({ minimum: 0 }),
      droppedTools: Type.Integer({ minimum: 0, description: 'Tools beyond Mcp:MaxToolsPerServer' }),
      checkedAt: nullable(Time),
      pin: oneOf(['None', 'Same', 'Changed'], {
        description: 'Comparison of the current listing with the approved one. None: nothing was approved',
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
    toolCount: Type.Integer({ minimum: 0, description: 'Remote tools that agents of the tenant can use now' }),
    servers: Type.Array(
      Type.Object({
        name: Type.String(),
        state: oneOf(serverStates),
        toolCount: Type.Integer({ minimum: 0 }),
        droppedTools: Type.Integer({ minimum: 0 }),
        clashes: Type.Array(Type.String(), { description: 'Tools with a name that another tool already has' }),
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
    mend: nullable(Type.String({ description: 'How to fix the problem' })),
  },
  { title: 'McpCheckStep' },
);
export type McpCheckStep = Static<typeof McpCheckStep>;

export const McpOAuthStartResponse = Type.Object(
  {
    authorizationUri: Type.String({ description: 'Address for the browser of the person who consents' }),
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
    byteSize: Type.Integer({ description: 'Size before truncation' }),
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
    hash: nullable(Type.String({ description: 'Hash of the current listing; null: nothing was listed yet' })),
    pinnedHash: nullable(Type.String()),
    changes: Type.Array(
      Type.Object({
        tool: Type.String({ description: 'Name of the tool at the server; empty: the server itself' }),
        change: oneOf(['Added', 'Removed', 'Changed', 'Renamed']),
        from: nullable(Type.String({ description: 'Previous name' })),
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
        description: 'Hash of the listing that was reviewed; 409 if the listing has changed',
      }),
    ),
  },
  { title: 'McpApproveRequest' },
);
