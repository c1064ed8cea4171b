import type { ProviderNames } from '../../contract/errors.ts';
import { ForeignError } from './foreign-error.ts';
import { ModelCallError } from './model-error.ts';
import type { ModelFinishReason } from './model-provider.ts';

/*
 * What the finish reasons of each wire mean. Each table is closed: a reason that is not in it fails the call and is
 * named, because an answer that ended for an unknown reason may be half of one.
 */

/**
 * `Paused`: the provider will continue when its message is sent back. `Failed`: the provider gave up, whatever it has
 * sent before.
 */
export type FinishMeaning = ModelFinishReason | 'Paused' | 'Failed';

export interface FinishTable {
  readonly meanings: Readonly<Record<string, FinishMeaning>>;
  /** Reasons are compared in lower case: servers that imitate an API write them in several ways. */
  readonly ignoresCase: boolean;
}

const openAIMeanings = {
  stop: 'Stop',
  length: 'Length',
  tool_calls: 'ToolCalls',
  function_call: 'ToolCalls',
  content_filter: 'ContentFilter',
} as const satisfies FinishTable['meanings'];

/** Chat completions of OpenAI. */
export const openAIFinish: FinishTable = { meanings: openAIMeanings, ignoresCase: false };

/** Deployments on Azure, whose filter has the same reason. */
export const azureFinish: FinishTable = { meanings: openAIMeanings, ignoresCase: false };

/**
 * Servers that speak chat completions. Vendors and programs are named where a reason is theirs; several gateways pass
 * the reasons of Anthropic, Gemini and Bedrock on as they are.
 */
export const compatibleFinish: FinishTable = {
  ignoresCase: true,
  meanings: {
    ...openAIMeanings,
    // Together
    eos: 'Stop',
    // Text Generation Inference
    eos_token: 'Stop',
    stop_sequence: 'Stop',
    end_turn: 'Stop',
    // Cohere
    complete: 'Stop',
    tool_call: 'ToolCalls',
    error_toxic: 'ContentFilter',
    error_limit: 'Length',
    user_cancel: 'Failed',
    timeout: 'Failed',
    tool_use: 'ToolCalls',
    max_tokens: 'Length',
    max_output_tokens: 'Length',
    model_context_window_exceeded: 'Length',
    // Mistral
    model_length: 'Length',
    error: 'Failed',
    // vLLM and SGLang
    abort: 'Failed',
    // DeepSeek
    insufficient_system_resource: 'Failed',
    aborted: 'Failed',
    // Zhipu
    sensitive: 'ContentFilter',
    network_error: 'Failed',
    // Ollama, when it loads or unloads a model in place of an answer
    load: 'Failed',
    unload: 'Failed',
    cancelled: 'Failed',
    canceled: 'Failed',
    refusal: 'ContentFilter',
    // Bedrock
    guardrail_intervened: 'ContentFilter',
    content_filtered: 'ContentFilter',
    malformed_model_output: 'Failed',
    malformed_tool_use: 'Failed',
    // Gemini
    safety: 'ContentFilter',
    recitation: 'ContentFilter',
    blocklist: 'ContentFilter',
    prohibited_content: 'ContentFilter',
    spii: 'ContentFilter',
    language: 'Failed',
    other: 'Failed',
    malformed_function_call: 'Failed',
    malformed_response: 'Failed',
    unexpected_tool_call: 'Failed',
    too_many_tool_calls: 'Failed',
    missing_thought_signature: 'Failed',
    finish_reason_unspecified: 'Failed',
  },
};

/** The Responses API: the reason of an incomplete response, or the status of one without a reason. */
export const responsesFinish: FinishTable = {
  ignoresCase: false,
  meanings: {
    completed: 'Stop',
    max_output_tokens: 'Length',
    content_filter: 'ContentFilter',
    incomplete: 'Failed',
    failed: 'Failed',
    cancelled: 'Failed',
    queued: 'Failed',
    in_progress: 'Failed',
    error: 'Failed',
  },
};

/** Anthropic messages. */
export const anthropicFinish: FinishTable = {
  ignoresCase: false,
  meanings: {
    end_turn: 'Stop',
    stop_sequence: 'Stop',
    tool_use: 'ToolCalls',
    max_tokens: 'Length',
    model_context_window_exceeded: 'Length',
    refusal: 'ContentFilter',
    pause_turn: 'Paused',
    // Asked for by a setting that the service never sends; the message holds a summary in place of an answer.
    compaction: 'Failed',
  },
};

/** Gemini's `FinishReason`, of Vertex AI as well. */
export const geminiFinish: FinishTable = {
  ignoresCase: false,
  meanings: {
    STOP: 'Stop',
    MAX_TOKENS: 'Length',
    SAFETY: 'ContentFilter',
    RECITATION: 'ContentFilter',
    BLOCKLIST: 'ContentFilter',
    PROHIBITED_CONTENT: 'ContentFilter',
    SPII: 'ContentFilter',
    MODEL_ARMOR: 'ContentFilter',
    ESCALATION: 'ContentFilter',
    IMAGE_SAFETY: 'ContentFilter',
    IMAGE_PROHIBITED_CONTENT: 'ContentFilter',
    IMAGE_RECITATION: 'ContentFilter',
    IMAGE_OTHER: 'Failed',
    NO_IMAGE: 'Failed',
    LANGUAGE: 'Failed',
    OTHER: 'Failed',
    MALFORMED_FUNCTION_CALL: 'Failed',
    MALFORMED_RESPONSE: 'Failed',
    UNEXPECTED_TOOL_CALL: 'Failed',
    TOO_MANY_TOOL_CALLS: 'Failed',
    MISSING_THOUGHT_SIGNATURE: 'Failed',
    // The vendor's library has asked for the rest before; what is left here has no rest.
    CONTINUATION: 'Length',
    FINISH_REASON_UNSPECIFIED: 'Failed',
  },
};

/** Whose answer it is. */
export interface AnsweredCall {
  readonly provider: string;
  readonly requestId: string;
  /** The credential, which must not be passed on; null: there is none. */
  readonly secret: string | null;
}

/** One gateway puts a category before the reason: `function_call_filter: MALFORMED_FUNCTION_CALL`. */
const shownReason = /^[A-Za-z0-9_.-]{1,40}(?:: [A-Za-z0-9_.-]{1,40})?$/;
const identifier = /^[A-Za-z0-9_.-]{1,64}$/;

/** The call fails, whatever came before; another provider may be tried. */
const badEnd = ({ provider, requestId, secret }: AnsweredCall, reason: string, isKnown: boolean): ModelCallError => {
  const isShown = shownReason.test(reason) && (secret === null || !reason.includes(secret));
  const named = isShown ? `with "${reason}"` : 'with a reason that is no name';
  const names: ProviderNames | undefined =
    isShown && identifier.test(reason) ? { code: reason, type: null, param: null, requestId } : undefined;
  return new ModelCallError(
    'provider_error',
    `Provider "${provider}" ended its answer ${named}${isKnown ? '' : ', a finish reason that is not known'}.`,
    {
      provider,
      reason: names,
      mayFallBack: true,
      cause: new ForeignError(`The finish reason is ${JSON.stringify(reason)}`, null),
    },
  );
};

export type GoodEnd = Exclude<FinishMeaning, 'Failed'>;

/** What a finish reason means. Throws ModelCallError for a reason, known or not, that does not end an answer. */
export const finishMeaning = ({ meanings, ignoresCase }: FinishTable, reason: string, call: AnsweredCall): GoodEnd => {
  const name = ignoresCase ? reason.toLowerCase() : reason;
  const meaning = Object.hasOwn(meanings, name) ? meanings[name] : undefined;
  if (meaning === undefined || meaning === 'Failed') throw badEnd(call, reason, meaning !== undefined);
  return meaning;
};

/** The provider announced calls of tools and has sent neither one nor a text. */
export const missingCalls = (provider: string): ModelCallError =>
  new ModelCallError('provider_error', `Provider "${provider}" announced a tool call and sent none.`, {
    provider,
    mayFallBack: true,
  });
