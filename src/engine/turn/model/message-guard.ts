import type { ModelHostedCall, ModelHostedResult, ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { ContentPart } from '../../context/index.ts';
import { blockedText, blockRun, type ContentGuards, guardedAnswer, tellMasks } from '../../control/index.ts';
import type { ModelPorts } from '../turn-ports.ts';
import { announceUsage } from './call-usage.ts';
import { hostedCallPart, hostedResultPart } from './hosted-call.ts';
import { replayedParts } from './response-cache.ts';

/** A part of a message in its place; what a provider did meanwhile is told once guards have seen it. */
export type HeldPart = ContentPart | ModelHostedCall | ModelHostedResult;

export interface WrittenMessage {
  readonly messageId: string;
  readonly text: string;
  readonly reasoning: string;
  readonly contents: readonly HeldPart[];
  readonly toolCalls: readonly ModelToolCall[];
  readonly finishReason: string;
  /** Name of the provider that wrote it. */
  readonly provider: string;
  /** No delta of it was sent yet. */
  readonly isHeld: boolean;
}

export interface KeptMessage {
  readonly text: string;
  readonly toolCalls: readonly ModelToolCall[];
  /** By call: masked arguments as they may be kept; null: as they are. */
  readonly keptInputs: readonly (string | null)[];
  readonly contents: readonly ContentPart[];
  /** Nothing differs from what the model wrote. */
  readonly isUnchanged: boolean;
}

type Hosted = ModelHostedCall | ModelHostedResult;

const isHosted = (part: HeldPart): part is Hosted => part.type === 'hosted-call' || part.type === 'hosted-result';

/** The deltas of a message that was held back, in their final form. */
const sendDeltas = (run: ActiveRun, messageId: string, reasoning: string, text: string): void => {
  const whole = [
    { type: 'reasoning-delta', text: reasoning },
    { type: 'text-delta', text },
  ] as const;
  for (const part of replayedParts(whole))
    if (part.type === 'text-delta') run.log.delta('message.delta', messageId, part.text);
    else if (part.type === 'reasoning-delta') run.log.delta('reasoning.delta', messageId, part.text);
};

/**
 * A whole message as the guards leave it, with its masks, searches and held deltas told to the log. Nothing of it was
 * kept before. Throws RunFailure of class ContentBlocked, its message closed by a placeholder.
 */
export const guardedMessage = async (
  run: ActiveRun,
  ports: ModelPorts,
  guards: ContentGuards,
  message: WrittenMessage,
): Promise<KeptMessage> => {
  const { messageId, finishReason, contents } = message;
  const hosted = contents.filter(isHosted);
  const answer = await guardedAnswer(run, guards, { ...message, hosted });
  if (answer.block !== null) {
    run.log.append('message.completed', { messageId, text: blockedText, finishReason });
    announceUsage(run, ports);
    throw await blockRun(run, guards, answer.block);
  }
  for (const { source, finding } of answer.masks) tellMasks(run, source, [finding]);
  // A provider's signature covers what the model wrote and found, so a masked part does not go back to it.
  const keepsReasoning = answer.reasoning === message.reasoning;
  const keepsHosted = hosted.every((part, index) => part === answer.hosted[index]);
  const shown = new Map(hosted.map((part, index) => [part, answer.hosted[index] ?? part]));
  const parts = contents.flatMap((part): ContentPart[] => {
    if (!isHosted(part)) return part.type === 'Reasoning' && !keepsReasoning ? [] : [part];
    const told = shown.get(part) ?? part;
    const content =
      told.type === 'hosted-call'
        ? hostedCallPart(run, ports, told, message.provider)
        : hostedResultPart(run, ports, told);
    return keepsHosted ? [content] : [];
  });
  if (message.isHeld) sendDeltas(run, messageId, answer.reasoning, answer.text);
  const { text, toolCalls, keptInputs, masks } = answer;
  return { text, toolCalls, keptInputs, contents: parts, isUnchanged: masks.length === 0 };
};
