import type { Json } from '../../contract/schema.ts';
import {
  type AgentDefinitionRequest,
  type AgentParameter,
  defaultCacheLifetimeMs,
  parameterKinds,
  responseFormatKinds,
  type SubAgentSettings,
} from './agents.schema.ts';

type JsonObject = Readonly<Record<string, Json>>;

export interface ModelReferenceContent {
  readonly provider: string;
  readonly model: string;
}

export interface ResponseFormatContent {
  readonly kind: (typeof responseFormatKinds)[number];
  readonly schema: Json;
  readonly schemaName: string | null;
  readonly schemaDescription: string | null;
}

export interface BindingContent extends ModelReferenceContent {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly maxOutputTokens: number | null;
  readonly reasoningEffort: string | null;
  readonly providerSettings: Record<string, Json>;
  readonly responseFormat: ResponseFormatContent | null;
  readonly fallbacks: ModelReferenceContent[];
  readonly responseCache: { readonly enabled: boolean; readonly lifetimeMs: number } | null;
  readonly allowConcurrentToolCalls: boolean;
}

/** What a version holds: every field of a definition with its defaults filled in, nothing about who saved it. */
export interface AgentContent {
  readonly name: string;
  readonly model: BindingContent;
  readonly displayName: string | null;
  readonly description: string | null;
  readonly instructions: string | null;
  readonly instructionsByCulture: Record<string, string> | null;
  readonly sharedInstructionsName: string | null;
  readonly parameters: Required<AgentParameter>[];
  readonly toolNames: string[];
  readonly skillNames: string[];
  readonly callableAgentNames: string[];
  readonly subAgents: Required<SubAgentSettings> | null;
  readonly mcpResourceUris: string[];
  readonly harness: Record<string, Json> | null;
  readonly compaction: Record<string, Json> | null;
  readonly memory: Record<string, Json> | null;
  readonly metadata: JsonObject & Record<string, Json>;
}

const defaultSchemaName = 'response';

/** Words of a closed set are taken in any case; one that is not in it stays as it is, for the rules to report. */
const canonicalWord = <W extends string>(words: readonly W[], given: W): W =>
  words.find((word) => word.toLowerCase() === given.toLowerCase()) ?? given;

const responseFormat = (given: AgentDefinitionRequest['model']['responseFormat']): ResponseFormatContent | null => {
  if (given === undefined || given === null) return null;
  const kind = canonicalWord(responseFormatKinds, given.kind);
  return {
    kind,
    schema: given.schema ?? null,
    schemaName: given.schemaName ?? (kind === 'JsonSchema' ? defaultSchemaName : null),
    schemaDescription: given.schemaDescription ?? null,
  };
};

const responseCache = (given: AgentDefinitionRequest['model']['responseCache']): BindingContent['responseCache'] =>
  given === undefined || given === null
    ? null
    : { enabled: given.enabled, lifetimeMs: given.lifetimeMs ?? defaultCacheLifetimeMs };

const binding = (given: AgentDefinitionRequest['model']): BindingContent => ({
  provider: given.provider,
  model: given.model,
  temperature: given.temperature ?? null,
  topP: given.topP ?? null,
  maxOutputTokens: given.maxOutputTokens ?? null,
  reasoningEffort: given.reasoningEffort ?? null,
  providerSettings: given.providerSettings ?? {},
  responseFormat: responseFormat(given.responseFormat),
  fallbacks: (given.fallbacks ?? []).map(({ provider, model }) => ({ provider, model })),
  responseCache: responseCache(given.responseCache),
  allowConcurrentToolCalls: given.allowConcurrentToolCalls ?? false,
});

const parameter = (given: AgentParameter): Required<AgentParameter> => ({
  name: given.name,
  kind: canonicalWord(parameterKinds, given.kind),
  required: given.required ?? false,
  defaultValue: given.defaultValue ?? null,
  description: given.description ?? null,
});

const subAgents = (given: AgentDefinitionRequest['subAgents']): Required<SubAgentSettings> | null =>
  given === undefined || given === null
    ? null
    : { childDeadlineMs: given.childDeadlineMs ?? null, waitTimeoutMs: given.waitTimeoutMs ?? null };

/**
 * The content that a body stands for: omitted fields take their defaults, members that are no content fall away.
 * Two bodies with equal contents are the same definition, and so are a body and a stored definition.
 */
export const agentContent = (body: AgentDefinitionRequest): AgentContent => ({
  name: body.name,
  model: binding(body.model),
  displayName: body.displayName ?? null,
  description: body.description ?? null,
  instructions: body.instructions ?? null,
  instructionsByCulture: body.instructionsByCulture ?? null,
  sharedInstructionsName: body.sharedInstructionsName ?? null,
  parameters: (body.parameters ?? []).map(parameter),
  toolNames: body.toolNames ?? [],
  skillNames: body.skillNames ?? [],
  callableAgentNames: body.callableAgentNames ?? [],
  subAgents: subAgents(body.subAgents),
  mcpResourceUris: body.mcpResourceUris ?? [],
  harness: body.harness ?? null,
  compaction: body.compaction ?? null,
  memory: body.memory ?? null,
  metadata: body.metadata ?? {},
});
