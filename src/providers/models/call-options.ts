import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import { withOwnHostedParts } from './hosted-parts.ts';
import type {
  ModelCall,
  ModelPrompt,
  ModelResponseFormat,
  ModelSampling,
  ModelTool,
  ModelToolChoice,
} from './model-provider.ts';
import { withReturnedReasoning } from './reasoning-replay.ts';
import { sendablePrompt } from './sendable-prompt.ts';
import type { CallExtras, Surface } from './surfaces/surface.ts';

// An agent's tool list is one array for many calls, so it is converted once.
const converted = new WeakMap<readonly ModelTool[], LanguageModelV4FunctionTool[]>();

const convert = (tools: readonly ModelTool[]): LanguageModelV4FunctionTool[] =>
  tools.map((tool) => ({ type: 'function', ...tool }));

const functionTools = (tools: readonly ModelTool[]): LanguageModelV4FunctionTool[] =>
  converted.getOrInsertComputed(tools, convert);

const responseFormat = (format: ModelResponseFormat): NonNullable<LanguageModelV4CallOptions['responseFormat']> => {
  if (format.kind === 'Text') return { type: 'text' };
  const schema = format.kind === 'JsonSchema' ? format.schema : undefined;
  return {
    type: 'json',
    // Any JSON is accepted as a schema here; the provider judges it.
    ...(schema !== undefined && { schema: schema as JsonSchema }),
    ...(format.name !== undefined && { name: format.name }),
    ...(format.description !== undefined && { description: format.description }),
  };
};

type JsonSchema = LanguageModelV4FunctionTool['inputSchema'];

const withInstruction = (prompt: ModelPrompt, instruction: string | undefined): ModelPrompt => {
  if (instruction === undefined) return prompt;
  // System messages come first in every API, after those that are there.
  const firstOther = prompt.findIndex((message) => message.role !== 'system');
  const at = firstOther === -1 ? prompt.length : firstOther;
  return prompt.toSpliced(at, 0, { role: 'system', content: instruction });
};

const toolChoice = (choice: ModelToolChoice): NonNullable<LanguageModelV4CallOptions['toolChoice']> =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.toolName };

const samplingOptions = ({ stop, ...rest }: ModelSampling): Partial<LanguageModelV4CallOptions> => ({
  ...rest,
  ...(stop !== undefined && { stopSequences: [...stop] }),
});

/** The call as the vendor libraries take it; fields that are null are left out, so the provider's default applies. */
export const callOptions = (
  call: ModelCall,
  { name, kind, webSearch, reasoningReplay }: Pick<Surface, 'name' | 'kind' | 'webSearch' | 'reasoningReplay'>,
  extras: CallExtras,
  signal: AbortSignal,
): LanguageModelV4CallOptions => {
  const search = call.webSearch === 'offered' && webSearch?.has(call.model) === true ? webSearch.tool(call) : null;
  const keeps = webSearch !== undefined && (search !== null || webSearch.sentWithoutTool);
  const prompt = sendablePrompt(withOwnHostedParts(call.prompt, kind, keeps), kind);
  const options: LanguageModelV4CallOptions = {
    prompt: withInstruction(withReturnedReasoning(prompt, name, reasoningReplay), extras.instruction),
    abortSignal: signal,
  };
  if (call.tools.length > 0 || search !== null) {
    options.tools = search === null ? functionTools(call.tools) : [...functionTools(call.tools), search];
    options.toolChoice = toolChoice(call.toolChoice);
  }
  if (call.temperature !== null) options.temperature = call.temperature;
  if (call.topP !== null) options.topP = call.topP;
  if (call.sampling !== undefined) Object.assign(options, samplingOptions(call.sampling));
  const maxOutputTokens = call.maxOutputTokens ?? extras.maxOutputTokens;
  if (maxOutputTokens !== undefined) options.maxOutputTokens = maxOutputTokens;
  if (call.responseFormat !== null) options.responseFormat = responseFormat(call.responseFormat);
  if (extras.reasoning !== undefined) options.reasoning = extras.reasoning;
  if (extras.providerOptions !== undefined) options.providerOptions = extras.providerOptions;
  return options;
};
