import type { Json } from '../../contract/schema.ts';
import { type BindingContent, bindingContent, canonicalWord } from './agent-model.content.ts';
import {
  type CompactionContent,
  compactionContent,
  type HarnessContent,
  harnessContent,
  type MemoryContent,
  memoryContent,
} from './agent-settings.content.ts';
import {
  type AgentDefinitionRequest,
  type AgentParameter,
  parameterKinds,
  type SubAgentSettings,
} from './agents.schema.ts';

type JsonObject = Readonly<Record<string, Json>>;

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
  readonly harness: HarnessContent | null;
  readonly compaction: CompactionContent | null;
  readonly memory: MemoryContent | null;
  readonly metadata: JsonObject & Record<string, Json>;
}

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
  model: bindingContent(body.model),
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
  harness: harnessContent(body.harness ?? null),
  compaction: compactionContent(body.compaction ?? null),
  memory: memoryContent(body.memory ?? null),
  metadata: body.metadata ?? {},
});
