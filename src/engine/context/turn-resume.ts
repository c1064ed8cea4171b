import { createHash } from 'node:crypto';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { parseForeignJson } from '../../core/documents/foreign-json.ts';
import type { ModelToolCall, ModelUsage } from '../../providers/models/model-provider.ts';
import type { CostMicros } from '../pricing.ts';
import type { ContinuedCall } from '../tools/index.ts';
import type { ChatMessage, ContentPart } from './chat-message.ts';

export type ToolResultPart = Extract<ContentPart, { type: 'ToolResult' }>;

/** Exactly one of the two is given. */
export interface ClientResult {
  readonly type: 'ClientResult';
  readonly result: string | null;
  readonly errorMessage: string | null;
}

/** What a person has said to the questions of a call that was made before: it is made again with that. */
export type QuestionAnswers = ContinuedCall & { readonly type: 'QuestionAnswers' };

/** A tool call that the model has made and that its next turn needs an answer to. */
export interface OpenCall {
  readonly call: ModelToolCall;
  /** Equal for every execution of the call, in whichever run or attempt. */
  readonly idempotencyKey: string;
  /**
   * `execute`: the call is made now. `approved`: the same, and nobody is asked again. ClientResult: what the caller's
   * own program answered. QuestionAnswers: the call is made again with what was said. Another part: the answer is known, nothing is called, logged or recorded.
   */
  readonly answer: 'execute' | 'approved' | ClientResult | QuestionAnswers | ToolResultPart;
  /** The arguments as they may be kept and shown, where guards have masked some; the tool gets the call's own. */
  readonly keptInput?: string;
}

/** A turn that goes on where another run, or an earlier attempt of this one, stopped. */
export interface TurnResume {
  /** What this turn has produced so far, the user's message first; empty when the session's history has it already. */
  readonly messages: readonly ChatMessage[];
  /**
   * All calls of the last assistant message, in the model's order, unless a Tool message answers them already.
   * They are answered before the first model call and make one Tool message.
   */
  readonly calls: readonly OpenCall[];
  /** What earlier attempts of the same run have used and settled; null when the turn comes from another run. */
  readonly earlier: EarlierAttempts | null;
  /** The user's next message as it was recorded; set when a recorded run is repeated. */
  readonly next?: ChatMessage;
}

export interface EarlierAttempts {
  readonly usage: ModelUsage;
  readonly cost: CostMicros | null;
  readonly settledTools: number;
  /** Rows that the turn's stored steps have. */
  readonly storedSteps: number;
}

/** Whether a call is made, now or again, and not only answered. */
export const isMade = ({ answer }: Pick<OpenCall, 'answer'>): boolean =>
  typeof answer === 'string' || answer.type === 'QuestionAnswers';

/** Equal texts for equal arguments. */
export const normalizedArguments = (text: string): string => {
  try {
    return canonicalJson(parseForeignJson(text) as Json);
  } catch {
    // No JSON, or nested too deeply: the model's own text is as good a name for the call.
    return text;
  }
};

/** The calls of a model turn, each with its key: run, model turn, tool, arguments, and which of equal calls it is. */
export const openCalls = (
  run: { readonly id: string; readonly modelCalls: number },
  calls: readonly ModelToolCall[],
  keptInputs: readonly (string | null)[] = [],
): readonly OpenCall[] => {
  const seen = new Map<string, number>();
  return calls.map((call, index) => {
    const keptInput = keptInputs[index] ?? null;
    // Of what is masked not even a hash is kept.
    const name = `${call.toolName}\n${normalizedArguments(keptInput ?? call.input)}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    const idempotencyKey = createHash('sha256')
      .update(`${run.id}\n${run.modelCalls}\n${nth}\n${name}`)
      .digest('hex')
      .slice(0, 40);
    return { call, idempotencyKey, answer: 'execute', ...(keptInput === null ? {} : { keptInput }) };
  });
};

/**
 * A call as it may be stored for whoever goes on with the turn. Masked arguments are not the ones that the tool was to
 * get, so without this process the call is not made again: until it has settled its outcome is unknown.
 */
export const storedCall = ({ keptInput, ...open }: OpenCall): OpenCall => {
  if (keptInput === undefined) return open;
  const { toolCallId, toolName } = open.call;
  const errorMessage =
    'The outcome of the call is unknown: its process ended, and it is not repeated, because its arguments were masked.';
  return {
    ...open,
    call: { ...open.call, input: keptInput },
    answer: { type: 'ToolResult', toolCallId, toolName, result: null, errorMessage },
  };
};

/** Model calls that the turn has had before: rounds and keys count on from there. */
export const earlierModelCalls = (resume: TurnResume | null): number =>
  resume?.messages.filter((message) => message.role === 'Assistant').length ?? 0;
