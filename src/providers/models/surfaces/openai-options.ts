import { takesReasoning } from '../model-catalog.ts';
import type { ModelCall, ModelCatalogEntry, ModelJson } from '../model-provider.ts';
import { splitSettings } from '../owned-settings.ts';
import { fitsStrictMode } from '../strict-schema.ts';
import { type CallExtras, knownEffort } from './surface.ts';

/** Names of the vendor library that differ from the API's own (which are snake_case and go into the body). */
const libraryOptions: ReadonlySet<string> = new Set([
  'logitBias',
  'maxCompletionTokens',
  'maxToolCalls',
  'serviceTier',
  'strictJsonSchema',
  'textVerbosity',
  'promptCacheKey',
  'promptCacheOptions',
  'promptCacheRetention',
  'reasoningSummary',
  'safetyIdentifier',
  'systemMessageMode',
  'forceReasoning',
  'parallelToolCalls',
]);

interface OpenAIDialect {
  /** Key of the vendor library's options. */
  readonly namespace: 'openai' | 'compatible';
  readonly responses: boolean;
  readonly catalog: readonly ModelCatalogEntry[];
  /** False: the endpoint may not know `parallel_tool_calls`, and strict ones refuse unknown members. */
  readonly parallelSwitch: boolean;
}

// The o-series answers 400 to this member.
const noParallelSwitch = /^o\d/;

const effortPatch = (effort: string, responses: boolean): Record<string, ModelJson> =>
  responses ? { reasoning: { effort } } : { reasoning_effort: effort };

const textPatch = (responses: boolean): Record<string, ModelJson> =>
  responses ? { text: { format: { type: 'text' } } } : { response_format: { type: 'text' } };

/** Options that the family of OpenAI APIs shares. */
export const openAIExtras =
  (dialect: OpenAIDialect) =>
  (call: ModelCall): CallExtras => {
    const { options, patch } = splitSettings(call.settings, libraryOptions);
    const reasons = takesReasoning(dialect.catalog, call.model);
    const effort = reasons === false ? null : call.reasoningEffort;
    // Deployments and private models have names that the library does not know as reasoning models.
    if (dialect.namespace === 'openai' && (reasons === true || effort !== null)) options['forceReasoning'] ??= true;
    if (effort !== null) {
      if (knownEffort(effort) === null) Object.assign(patch, effortPatch(effort, dialect.responses));
      else options['reasoningEffort'] = effort;
    }
    if (
      !call.parallelToolCalls &&
      call.tools.length > 0 &&
      dialect.parallelSwitch &&
      !noParallelSwitch.test(call.model)
    )
      options['parallelToolCalls'] ??= false;
    if (dialect.responses) options['store'] = false;
    const format = call.responseFormat;
    if (format?.kind === 'Text') Object.assign(patch, textPatch(dialect.responses));
    else if (format?.kind === 'JsonSchema' && format.schema !== undefined)
      options['strictJsonSchema'] ??= fitsStrictMode(format.schema);
    return {
      ...(Object.keys(options).length > 0 && { providerOptions: { [dialect.namespace]: options } }),
      ...(Object.keys(patch).length > 0 && { patch }),
    };
  };
