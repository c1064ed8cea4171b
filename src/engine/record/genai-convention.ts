import type { ModelFinishReason, ModelProvider } from '../../providers/models/model-provider.ts';

/*
 * Values that the OpenTelemetry conventions for generative AI have for what this service calls otherwise. Beside them
 * stand our own, below `acp.`.
 */

const wellKnown: Partial<Record<ModelProvider['kind'], string>> = {
  openai: 'openai',
  'openai-responses': 'openai',
  anthropic: 'anthropic',
  google: 'gcp.gemini',
  azure: 'azure.ai.openai',
};

/** The convention's name of a provider; one that it does not know keeps its own. */
export const conventionalProvider = ({ kind, name }: Pick<ModelProvider, 'kind' | 'name'>): string =>
  wellKnown[kind] ?? name;

/** `gen_ai.response.finish_reasons`: one answer is asked for, so there is one reason. */
export const conventionalFinish: Readonly<Record<ModelFinishReason, readonly [string]>> = {
  Stop: ['stop'],
  Length: ['length'],
  ToolCalls: ['tool_calls'],
  ContentFilter: ['content_filter'],
};

/** The reason of an answer that did not come, or not to its end. */
export const failedFinish: readonly [string] = ['error'];
