import Type, { type Static } from 'typebox';
import { flowSettings } from '../../contract/flow-settings.ts';
import { closed, Int32, type Json, JsonValue, nullable, oneOf, Time } from '../../contract/schema.ts';
import { compactionSettings, HarnessSettings, MemorySettings, mostListed } from './agent-settings.schema.ts';
import { openWord, type WordSchema } from './agent-words.schema.ts';

// Limits that have their own finding (`too-long`, `value-out-of-range`, …) are checked by the agent rules, so that
// every finding is reported together; the schema only says what makes a body unreadable: wrong JSON types.
const text = () => Type.Optional(nullable(Type.String()));
/** Names have at most 128 characters; a long one is compared with and quoted by many rules. */
const names = (maxLength = 256) => Type.Optional(Type.Array(Type.String({ maxLength }), { maxItems: mostListed }));

/** Several times what providers call their models. */
const modelName = () => Type.String({ maxLength: 512 });
const ModelReference = closed({ provider: modelName(), model: modelName() });
const OpenModelReference = Type.Object({ provider: modelName(), model: modelName() });

const defaultCacheLifetimeMs = 600_000;

export const responseFormatKinds = ['Text', 'Json', 'JsonSchema'] as const;
const responseFormat = (word: WordSchema) =>
  Type.Object({
    kind: word(responseFormatKinds),
    schema: Type.Optional(nullable(JsonValue)),
    schemaName: text(),
    schemaDescription: text(),
  });

const modelBinding = (word: WordSchema, reference: typeof OpenModelReference) =>
  Type.Object({
    provider: Type.String({ minLength: 1, description: 'At most 128 characters' }),
    model: Type.String({
      minLength: 1,
      description: 'At most 128 characters; a deployment name for the deployment-based provider',
    }),
    temperature: Type.Optional(nullable(Type.Number({ description: '0..2' }))),
    topP: Type.Optional(nullable(Type.Number({ description: '0..1' }))),
    maxOutputTokens: Type.Optional(nullable(Type.Integer({ description: 'At least 1' }))),
    reasoningEffort: text(),
    providerSettings: Type.Optional(
      Type.Unsafe<Record<string, Json>>({ type: 'object', description: 'Entries `{provider}.{setting}`' }),
    ),
    responseFormat: Type.Optional(nullable(responseFormat(word))),
    fallbacks: Type.Optional(Type.Array(reference, { maxItems: mostListed, description: 'At most 5, tried in order' })),
    responseCache: Type.Optional(
      nullable(
        Type.Object({
          enabled: Type.Boolean({ description: 'Identical model calls get their response from the store' }),
          lifetimeMs: Type.Optional(Type.Integer({ default: defaultCacheLifetimeMs, description: '1000..86400000' })),
        }),
      ),
    ),
    allowConcurrentToolCalls: Type.Optional(Type.Boolean()),
  });
const ModelBindingRequest = modelBinding(openWord, OpenModelReference);
const ModelBinding = modelBinding(oneOf, ModelReference);

export const parameterKinds = ['Text', 'Number', 'Boolean'] as const;
const agentParameter = (word: WordSchema) =>
  Type.Object({
    name: Type.String(),
    kind: word(parameterKinds),
    required: Type.Optional(Type.Boolean()),
    defaultValue: text(),
    description: text(),
  });
const AgentParameterRequest = agentParameter(openWord);
const AgentParameter = agentParameter(oneOf);

const SubAgentSettings = Type.Object({
  childDeadlineMs: Type.Optional(nullable(Type.Integer())),
  waitTimeoutMs: Type.Optional(nullable(Type.Integer())),
});

const FlowSettings = flowSettings('the run request, such as /parameters/customer');

export const remoteEffects = ['Read', 'Write', 'Destructive', 'External'] as const;
export const remotePinnings = ['Off', 'Warn', 'Block'] as const;
const defaultRemoteTimeoutMs = 300_000;

const remoteAgent = (word: WordSchema) =>
  Type.Object({
    name: Type.String({
      maxLength: 256,
      description: 'The model calls it as `call_{name}`; `[A-Za-z0-9][A-Za-z0-9_-]{0,31}`',
    }),
    cardUrl: Type.String({ description: 'Address of its card (A2A)' }),
    description: Type.Optional(
      nullable(
        Type.String({ description: 'Description for models, at most 2000 characters. Models see nothing of the card' }),
      ),
    ),
    authorizationConfigurationKey: Type.Optional(
      nullable(
        Type.String({
          description:
            'Key below `Mcp:AllowedConfigurationPrefix` that holds the complete Authorization header. The header is sent only after the card is approved',
        }),
      ),
    ),
    requiresApproval: Type.Optional(Type.Boolean({ default: true })),
    effect: Type.Optional({ ...word(remoteEffects), default: 'External' }),
    pinning: Type.Optional({ ...word(remotePinnings), default: 'Warn' }),
    timeoutMs: Type.Optional(Type.Integer({ default: defaultRemoteTimeoutMs, description: '1000..86400000' })),
  });
const RemoteAgentRequest = remoteAgent(openWord);
const DefinedRemoteAgent = remoteAgent(oneOf);

export const toolDiscoveries = ['all', 'search'] as const;
const toolDiscovery = Type.Unsafe<(typeof toolDiscoveries)[number]>({
  type: 'string',
  default: 'all',
  examples: toolDiscoveries,
  description: 'all: the model gets all of `toolNames` with every call; search: the model searches for tools',
});

/** Body of create, update and validate. Unknown members are findings of the agent rules, never dropped. */
export const AgentDefinitionRequest = Type.Object(
  {
    name: Type.String({ description: 'Immutable; `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`' }),
    model: ModelBindingRequest,
    expectedVersion: Type.Optional(
      nullable(Int32({ description: 'Update only: 409 if it is not the current version' })),
    ),
    displayName: text(),
    description: text(),
    instructions: text(),
    instructionsByCulture: Type.Optional(nullable(Type.Record(Type.String(), Type.String(), { maxProperties: 1000 }))),
    sharedInstructionsName: text(),
    parameters: Type.Optional(Type.Array(AgentParameterRequest, { maxItems: mostListed })),
    toolNames: names(),
    toolDiscovery: Type.Optional(toolDiscovery),
    skillNames: names(),
    callableAgentNames: names(),
    remoteAgents: Type.Optional(
      Type.Array(RemoteAgentRequest, {
        maxItems: mostListed,
        description: 'Agents of other systems that the agent can call, at most 16',
      }),
    ),
    subAgents: Type.Optional(nullable(SubAgentSettings)),
    flow: Type.Optional(nullable(FlowSettings, { description: 'For queued runs only' })),
    mcpResourceUris: names(8192),
    harness: Type.Optional(nullable(HarnessSettings)),
    compaction: Type.Optional(nullable(compactionSettings(openWord, ModelBindingRequest))),
    memory: Type.Optional(nullable(MemorySettings)),
    metadata: Type.Optional(
      Type.Unsafe<Record<string, Json>>({ type: 'object', description: 'At most 16384 bytes as JSON' }),
    ),
  },
  { title: 'AgentDefinitionRequest' },
);
export type AgentDefinitionRequest = Static<typeof AgentDefinitionRequest>;

/** A stored version: a full snapshot with every field present. */
export const AgentDefinition = Type.Object(
  {
    name: Type.String(),
    model: ModelBinding,
    displayName: nullable(Type.String()),
    description: nullable(Type.String()),
    instructions: nullable(Type.String()),
    instructionsByCulture: nullable(Type.Record(Type.String(), Type.String())),
    sharedInstructionsName: nullable(Type.String()),
    parameters: Type.Array(AgentParameter),
    toolNames: Type.Array(Type.String()),
    toolDiscovery: oneOf(toolDiscoveries),
    skillNames: Type.Array(Type.String()),
    callableAgentNames: Type.Array(Type.String()),
    remoteAgents: Type.Array(DefinedRemoteAgent),
    subAgents: nullable(SubAgentSettings),
    flow: nullable(FlowSettings),
    mcpResourceUris: Type.Array(Type.String()),
    harness: nullable(HarnessSettings),
    compaction: nullable(compactionSettings(oneOf, ModelBinding)),
    memory: nullable(MemorySettings),
    metadata: Type.Unsafe<Record<string, Json>>({ type: 'object' }),
    origin: oneOf(['database']),
    version: Int32(),
    tenantId: Type.String(),
    updatedAt: Time,
    updatedBy: nullable(Type.String()),
    restoredFrom: nullable(Type.Integer()),
  },
  { title: 'AgentDefinition' },
);
export type AgentDefinition = Static<typeof AgentDefinition>;

const agentOrigins = ['code', 'database'] as const;
export const AgentDescriptor = Type.Object(
  {
    name: Type.String(),
    displayName: nullable(Type.String()),
    description: nullable(Type.String()),
    origin: oneOf(agentOrigins),
    version: Int32(),
    model: nullable(ModelReference),
    toolNames: Type.Array(Type.String()),
    skillNames: Type.Array(Type.String()),
    callableAgentNames: Type.Array(Type.String()),
    usesHarness: Type.Boolean(),
    updatedAt: nullable(Time),
  },
  { title: 'AgentDescriptor' },
);
export type AgentDescriptor = Static<typeof AgentDescriptor>;

export const AgentDetailResponse = Type.Object(
  { descriptor: AgentDescriptor, definition: nullable(AgentDefinition), isEditable: Type.Boolean() },
  { title: 'AgentDetailResponse' },
);
export const AgentRollbackRequest = closed(
  { version: Int32(), expectedVersion: Type.Optional(nullable(Int32())) },
  { title: 'AgentRollbackRequest' },
);
export const AgentVersionDiffResponse = Type.Object(
  { left: AgentDefinition, right: AgentDefinition },
  { title: 'AgentVersionDiffResponse' },
);

export const ValidationMessage = Type.Object({
  severity: oneOf(['Error', 'Warning']),
  code: Type.String(),
  message: Type.String(),
  path: nullable(Type.String()),
});
export type ValidationMessage = Static<typeof ValidationMessage>;
export const AgentValidationReport = Type.Object(
  { valid: Type.Boolean(), inconclusive: Type.Boolean(), messages: Type.Array(ValidationMessage) },
  { title: 'AgentValidationReport' },
);
export type AgentValidationReport = Static<typeof AgentValidationReport>;

export const ContextWindowEstimate = Type.Object(
  {
    promptTokens: Type.Integer(),
    contextWindowTokens: nullable(Type.Integer()),
    allowedPromptTokens: nullable(Type.Integer()),
    wouldBeRejected: Type.Boolean(),
  },
  { title: 'ContextWindowEstimate' },
);
export type ContextWindowEstimate = Static<typeof ContextWindowEstimate>;
