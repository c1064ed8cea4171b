import { hourMs, minuteMs, secondMs } from '../duration.ts';
import { age, bytes, duration, int } from '../number-kinds.ts';
import {
  flag,
  group,
  mapOf,
  optional,
  plannedGroup,
  required,
  requiredSecret,
  secret,
  section,
  setting,
} from '../schema-nodes.ts';
import {
  addressRange,
  credential,
  headerName,
  issuer,
  mountPrefix,
  origin,
  path,
  routePath,
  tenantSlug,
  text,
  url,
} from '../text-kinds.ts';
import { codeOnly, listOf, nullable, oneOf } from '../value-kind.ts';

const exposedBudget = group('Limits of a run that another system started, and the runs below it.', {
  MaxDepth: setting(int(), 1, 'Deepest level of a child run.'),
  MaxTotalRuns: setting(int(), 25, 'Child runs of the tree.'),
  MaxTotalTokens: setting(int(), 200_000, 'Tokens of all runs of the tree.'),
});

const files = (doc: string) => setting(listOf(path({ label: 'folder or file' })), [], doc);

const exposedModel = group('A model that is exposed.', {
  Fallbacks: setting(
    listOf(text(), { unique: true, max: 5 }),
    [],
    'Exposed models, as provider/model, that are asked in this order when the provider fails before it has answered.',
  ),
  CacheLifetime: optional(
    duration({ min: secondMs }),
    'How long equal calls of a tenant are answered from the store, 24 hours at most. Null: each one reaches the model.',
  ),
});

const exposure = {
  OpenAi: group('The API for clients of OpenAI.', {
    Enabled: flag(true, 'The routes below /v1 exist.'),
    Conversations: flag(true, 'Its conversations exist.'),
  }),
  OpenAiCompat: group('Models for clients of OpenAI.', {
    ExposeModels: flag(
      false,
      'Models that providers list, and their default models, are called as provider/model by whoever may start runs.',
    ),
    Models: mapOf(
      '{provider}',
      mapOf('{model}', exposedModel, 'Models of a provider.'),
      'What goes with models that are exposed, by provider.',
    ),
  }),
  McpServer: group('Agents, and the service itself, as tools of an MCP server.', {
    Agents: setting(
      listOf(text(), { unique: true }),
      [],
      'Agents that are offered, by their exact names. Empty, and ControlPlane Off: there is no such server.',
    ),
    ControlPlane: setting(
      oneOf(['Off', 'Read', 'Write']),
      'Off',
      'Operations of the service as tools, to those who may call them. Read: only those that change nothing.',
    ),
    Path: setting(routePath(), '/mcp', 'Path below the prefix.'),
    ToolNamePrefix: setting(
      text({ empty: true, pattern: /^[A-Za-z0-9_.-]{0,64}$/, expected: 'at most 64 of A-Z a-z 0-9 _ . -' }),
      '',
      'Stands before the name of each agent.',
    ),
    Budget: exposedBudget,
    Tasks: group('Long calls that are answered later.', {
      Enabled: flag(true, 'Callers may use tasks.'),
      InlineWait: setting(
        duration({ zero: true }),
        5 * secondMs,
        'Time after which a call becomes a task. 0s: at once.',
      ),
      TimeToLive: setting(age(), 24 * hourMs, 'How long a task is known.'),
      PollInterval: setting(duration(), 2 * secondMs, 'Pause that callers are asked to make.'),
    }),
  }),
  McpStdio: mapOf(
    '{name}',
    group('A program of this host that speaks the Model Context Protocol over its standard streams.', {
      Command: required(listOf(text()), 'The program and its arguments. No shell reads them.'),
      Environment: mapOf(
        '{variable}',
        requiredSecret(text({ empty: true }), 'Value of this variable.'),
        'All that it gets beside PATH.',
      ),
      WorkingDirectory: optional(path({ label: 'folder' }), 'Where it runs. Null: where the service does.'),
      Tenant: optional(text(), 'Whose tools these are. Null: those of the default tenant.'),
      Protocol: setting(
        oneOf(['Auto', 'Stateless', 'Handshake']),
        'Auto',
        'Generation of the protocol. Auto: it is found out.',
      ),
      RequiresApproval: flag(true, 'A person is asked before one of its tools is called.'),
      Effects: mapOf(
        '{tool}',
        required(
          oneOf(['Read', 'Write', 'Destructive', 'External']),
          'What a call of this tool does, whatever the program says of it.',
        ),
        'By the names that the program gives its tools.',
      ),
      Pinning: setting(
        oneOf(['Off', 'Warn', 'Block']),
        'Warn',
        'What becomes of a tool that is not as it was approved.',
      ),
    }),
    'MCP servers that the service starts by itself, by name. They can be had from here alone, never over the API.',
    {
      pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/,
      expected: '1 to 32 of A-Z a-z 0-9 _ - that start with a letter or digit',
    },
  ),
  A2A: group('Agents for other agents (A2A).', {
    Agents: setting(listOf(text(), { unique: true }), [], 'Agents that are offered. Empty: there is no such route.'),
    Path: setting(routePath(), '/a2a', 'Path below the prefix.'),
    PublicBaseUrl: optional(url(), 'Address in agent cards; needed behind a proxy.'),
    PublicCards: flag(false, 'Cards can be read without a credential.'),
    LegacyCompat: flag(true, 'Version 0.3 of the protocol is served too.'),
    Provider: section('Who offers the agents, as cards say it.', {
      Organization: required(text(), 'Name of the organization.'),
      Url: required(url(), 'Its address.'),
    }),
    MaxWait: setting(duration(), 5 * minuteMs, 'Longest wait of a call that blocks.'),
    MaxRequestBytes: setting(bytes(), 10_485_760, 'Size of a call.'),
    Budget: exposedBudget,
  }),
  RemoteAgents: mapOf(
    '{name}',
    group('An agent of another system, which agents call as call_{name}.', {
      CardUrl: required(url(), 'Address of its card.'),
      Description: optional(
        text({ max: 2000 }),
        'What models are told that it does. Nothing of its card is told to them.',
      ),
      AuthorizationConfigurationKey: optional(
        text(),
        'Key below Service:Mcp:AllowedConfigurationPrefix that holds the whole Authorization header.',
      ),
      RequiresApproval: flag(true, 'A person is asked before it is called.'),
      Effect: setting(
        oneOf(['Read', 'Write', 'Destructive', 'External']),
        'External',
        'What a call does. Read and Write: it may be made again after a crash.',
      ),
      Pinning: setting(
        oneOf(['Off', 'Warn', 'Block']),
        'Warn',
        'What follows where its card is not as it was approved. Block: it is not called.',
      ),
      Timeout: setting(duration(), 5 * minuteMs, 'Longest wait for an answer. Then its task is canceled.'),
    }),
    'Agents of other systems (A2A), by the names that agents call them by.',
    {
      pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/,
      expected: '1 to 32 of A-Z a-z 0-9 _ - that do not start with a hyphen or an underscore',
    },
  ),
  Traces: group('Runs of agents that other programs execute, told by their OpenTelemetry spans (OTLP/HTTP).', {
    Enabled: flag(false, 'POST /v1/traces exists.'),
    MaxRequestBytes: setting(bytes(), 4_194_304, 'Size of a request, unpacked.'),
    SettleAfter: setting(
      duration(),
      10 * secondMs,
      'How long the spans below a root may stay away after the last that came: then they are a run, and later ones are refused.',
    ),
    OrphansAfter: setting(
      duration(),
      5 * 60 * secondMs,
      'How long spans wait for the span above them; then they become runs as they are.',
    ),
    SetAsideFor: setting(
      age(),
      14 * 24 * hourMs,
      'How long spans are kept that cannot be made a run, from when they came; then they are removed, with an error in the log.',
    ),
  }),
  Voice: plannedGroup('voice', 'Speech routes.', {
    Conversation: group('Spoken conversations.', {
      Register: flag(false, 'The voice WebSocket exists.'),
    }),
  }),
};

const identity = {
  AnonymousLoopback: flag(
    true,
    'Callers of this machine need no credential and are administrators, while no token, issuer or remote access is set.',
  ),
  AuthToken: secret(
    nullable(credential()),
    null,
    'Shared token with all rights. Give it as a variable or a reference, not in the file.',
  ),
  AuthorizationPolicy: setting(
    codeOnly(),
    null,
    'Only for programs that mount the service; a module brings its own authorization handler.',
  ),
  RequireRolePolicies: flag(
    false,
    'Roles of tokens are decided by the policies Reader, Operator and Admin of the modules.',
  ),
  Oidc: group('Tokens of an identity provider. Issuer and Audience belong together.', {
    Issuer: optional(issuer(), 'Issuer of the tokens, to the letter.'),
    Audience: optional(text(), 'Audience that the tokens must be made for.'),
    RoleClaim: setting(text(), 'roles', 'Claim with the role.'),
    TenantClaim: optional(text(), 'Claim with the tenant.'),
  }),
  Tenancy: group('Several tenants in one service.', {
    Enabled: flag(false, 'Each request is for one tenant. Off: all are for the default one.'),
    ClaimType: optional(text(), 'Claim with the tenant. Null: no claim is read.'),
    AllowHeaderResolution: flag(false, 'The header below may name the tenant.'),
    HeaderName: setting(headerName(), 'X-Service-Tenant', 'Name of the header that may choose the tenant.'),
    AllowedTenants: setting(listOf(tenantSlug(), { unique: true }), [], 'Tenants that are served. Empty: all.'),
  }),
};

/** How the service is mounted and what code it loads. Never settable through the API. */
export const hostSettings = {
  Prefix: setting(mountPrefix(), '', 'Path in front of every operation.'),
  Url: setting(origin({ label: 'http(s) URL' }), 'http://127.0.0.1:7070', 'Address to listen on.'),
  AllowRemoteAccess: flag(false, 'Callers from other machines are served. Needs a token, an API key or a policy.'),
  ...identity,
  EnableDiagnosticsEndpoint: flag(false, 'GET /api/diagnostics exists.'),
  RunEventPollInterval: setting(duration(), 250, 'Pause between looks for events of a run in another process.'),
  AllowedOrigins: setting(listOf(origin(), { unique: true }), [], 'Web origins that may call. Empty: no CORS headers.'),
  TrustedProxies: setting(
    listOf(addressRange(), { unique: true }),
    [],
    'Proxies that may name the address of a caller, for limits and logs.',
  ),
  SkillScripts: group('The runner of skill scripts.', {
    Register: flag(false, 'The runner exists and scripts are enabled; see Service:Skills:Scripts.'),
  }),
  Agents: files('Agents from YAML files that the API cannot change.'),
  Tools: files('HTTP tools from YAML files.'),
  Modules: files('Code to load: tools, guards, judges, agents and more.'),
  ArchiveFolder: optional(
    path({ label: 'folder' }),
    'Where retention writes what it archives. Null: only a module with a sink archives.',
  ),
  ...exposure,
  Health: group('Routes for probes, outside the prefix and without a credential.', {
    LivePath: setting(nullable(routePath()), '/health/live', 'Whether the process lives. Null: no route.'),
    ReadyPath: setting(nullable(routePath()), '/health/ready', 'Whether it can serve. Null: no route.'),
  }),
  Metrics: group('Metrics for Prometheus, outside the prefix. Readers with the scope PlatformRead get them.', {
    Path: optional(routePath(), 'Such as /metrics. Null: no route.'),
  }),
  LogLevel: setting(
    oneOf(['trace', 'debug', 'info', 'warn', 'error']),
    'info',
    'Least severe messages that are written.',
  ),
};
