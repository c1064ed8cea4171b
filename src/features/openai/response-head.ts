import type { OpenAiResponseRow } from '../../db/tables/openai.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { ModelToolChoice } from '../../providers/models/model-provider.ts';
import type { Metadata } from './openai.schema.ts';
import type { ResponseHead } from './response-events.ts';
import type { ToolForms } from './tool-forms.ts';

/** What the agent has its model asked with, as far as responses tell it. */
export interface EffectiveSettings {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly effort: string | null;
  readonly maxOutputTokens: number | null;
  readonly parallelToolCalls: boolean;
  readonly format: unknown;
  /** Absent in rows that an earlier version wrote. */
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  /** Absent: auto. */
  readonly toolChoice?: unknown;
  /** Absent: the tools of the request are functions. */
  readonly toolForms?: ToolForms;
}

/** Absent: the provider's own, which is none with all of them. */
const penaltyOf = (value: unknown): number => (typeof value === 'number' ? value : 0);

const choiceOf = (choice: ModelToolChoice): unknown =>
  typeof choice === 'string' ? choice : { type: 'function', name: choice.toolName };

export const effectiveSettings = ({ model }: CompiledAgent, forms: ToolForms | null): EffectiveSettings => {
  const { responseFormat: format } = model;
  return {
    temperature: model.temperature,
    topP: model.topP,
    effort: model.reasoningEffort,
    maxOutputTokens: model.maxOutputTokens,
    parallelToolCalls: model.allowConcurrentToolCalls,
    presencePenalty: penaltyOf(
      model.sampling?.presencePenalty ?? model.settings['presence_penalty'] ?? model.settings['presencePenalty'],
    ),
    frequencyPenalty: penaltyOf(
      model.sampling?.frequencyPenalty ?? model.settings['frequency_penalty'] ?? model.settings['frequencyPenalty'],
    ),
    ...(model.toolChoice !== undefined && { toolChoice: choiceOf(model.toolChoice) }),
    ...(forms === null ? {} : { toolForms: forms }),
    format:
      format === null || format.kind === 'Text'
        ? { type: 'text' }
        : format.kind === 'Json'
          ? { type: 'json_object' }
          : { type: 'json_schema', name: format.name ?? 'response', schema: format.schema ?? {} },
  };
};

/** How a response tells calls of its caller's tools; null: as those of functions. */
export const formsOf = ({ settings }: Pick<OpenAiResponseRow, 'settings'>): ToolForms | null =>
  (JSON.parse(settings) as EffectiveSettings).toolForms ?? null;

/** What a response says of itself, whether or not it is stored. */
export const headOf = (
  row: Omit<OpenAiResponseRow, 'tenant_id' | 'owner_id' | 'run_id' | 'session_id'>,
  store = true,
): ResponseHead => {
  const settings = JSON.parse(row.settings) as EffectiveSettings;
  return {
    id: row.id,
    object: 'response',
    created_at: Math.floor(row.created_at / 1000),
    model: row.agent_name,
    conversation: row.conversation_id === null ? null : { id: row.conversation_id },
    previous_response_id: row.previous_response_id,
    instructions: null,
    metadata: JSON.parse(row.metadata) as Metadata,
    store,
    background: false,
    max_output_tokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    top_p: settings.topP,
    reasoning: { effort: settings.effort, summary: null },
    text: { format: settings.format as ResponseHead['text']['format'] },
    parallel_tool_calls: settings.parallelToolCalls,
    tool_choice: (settings.toolChoice ?? 'auto') as ResponseHead['tool_choice'],
    tools: [],
    truncation: 'disabled',
    user: null,
    presence_penalty: penaltyOf(settings.presencePenalty),
    frequency_penalty: penaltyOf(settings.frequencyPenalty),
    top_logprobs: 0,
    max_tool_calls: null,
    service_tier: 'default',
    safety_identifier: null,
    prompt_cache_key: null,
  };
};
