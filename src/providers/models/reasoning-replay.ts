import { isRecord } from '../../contract/record.ts';
import type { ModelJson, ModelPart, ModelPrompt } from './model-provider.ts';
import type { CompatibleSettings } from './model-settings.ts';

/*
 * Reasoning that an endpoint of chat completions wants back. DeepSeek answers 400 when `reasoning_content` is missing
 * beside a tool call; OpenRouter takes `reasoning_details` for what models have signed or encrypted. Other endpoints
 * answer 400 when they get a property that they do not know, so that the default returns what the endpoint itself has
 * sent, and to no other endpoint.
 */

export type ReasoningReplay = NonNullable<CompatibleSettings['ReasoningReplay']>;

type Member = 'reasoning_content' | 'reasoning';
type Message = ModelPrompt[number];
type AssistantMessage = Extract<Message, { role: 'assistant' }>;

const namespace = 'compatible';
/** The vendor library writes the properties under this key into the message. */
const libraryKey = 'openaiCompatible';

/** How an endpoint has sent its reasoning. */
export interface SentReasoning {
  readonly text: string;
  /** Null: it came as details alone. */
  readonly member: Member | null;
  readonly details: readonly ModelJson[];
}

const wants = (replay: ReasoningReplay, { member, details }: SentReasoning, hasCalls: boolean): boolean => {
  if (replay === 'None') return false;
  if (replay === 'ReasoningDetails') return details.length > 0;
  if (replay === 'Auto') return details.length > 0 || (hasCalls && member === 'reasoning_content');
  return hasCalls && member !== null;
};

/** The part that keeps the reasoning of an answer with its message; null: it does not go back. */
export const returnedReasoning = (
  replay: ReasoningReplay,
  provider: string,
  sent: SentReasoning,
  hasCalls: boolean,
): ModelPart | null => {
  if (!wants(replay, sent, hasCalls)) return null;
  const { text, member, details } = sent;
  const reasoning: ModelJson = { provider, member, details: [...details] };
  return { type: 'reasoning-end', text, providerMetadata: { [namespace]: { reasoning } } };
};

interface KeptReasoning extends SentReasoning {
  readonly provider: unknown;
}

const keptIn = (message: AssistantMessage): KeptReasoning | null => {
  for (const part of message.content) {
    const kept = part.type === 'reasoning' ? part.providerOptions?.[namespace]?.['reasoning'] : undefined;
    if (part.type === 'reasoning' && isRecord(kept)) {
      const { provider, member, details } = kept;
      return {
        provider,
        text: part.text,
        member: member === 'reasoning_content' || member === 'reasoning' ? member : null,
        details: Array.isArray(details) ? (details as ModelJson[]) : [],
      };
    }
  }
  return null;
};

const hasCalls = ({ content }: AssistantMessage): boolean => content.some((part) => part.type === 'tool-call');

/** What is sent back where the endpoint decides: only to where it came from. */
const membersAsSent = (kept: KeptReasoning | null, isCall: boolean, always: boolean): Record<string, ModelJson> => ({
  ...(kept !== null && kept.details.length > 0 && { reasoning_details: [...kept.details] }),
  // An endpoint that wants it with one call wants it with each, also where there was none.
  ...(isCall && (always || kept?.member === 'reasoning_content') && { reasoning_content: kept?.text ?? '' }),
});

const membersFor = (
  replay: Exclude<ReasoningReplay, 'Auto' | 'None'>,
  kept: KeptReasoning | null,
  isCall: boolean,
): Record<string, ModelJson> => {
  if (replay === 'ReasoningDetails')
    return kept !== null && kept.details.length > 0 ? { reasoning_details: [...kept.details] } : {};
  if (!isCall) return {};
  return { [replay === 'Reasoning' ? 'reasoning' : 'reasoning_content']: kept?.text ?? '' };
};

const isOurs = (part: AssistantMessage['content'][number]): boolean =>
  part.type === 'reasoning' && part.providerOptions?.[namespace]?.['reasoning'] !== undefined;

/**
 * The prompt with reasoning as this endpoint takes it. `replay` undefined: another API, which gets none that came from
 * chat completions. The vendor library would send what any provider has reasoned to every endpoint.
 */
export const withReturnedReasoning = (
  prompt: ModelPrompt,
  provider: string,
  replay: ReasoningReplay | undefined,
): ModelPrompt => {
  const reasons = (message: Message): boolean =>
    message.role === 'assistant' && message.content.some((part) => part.type === 'reasoning');
  const isExplicit = replay !== undefined && replay !== 'Auto' && replay !== 'None';
  if (!isExplicit && !prompt.some(reasons)) return prompt;
  const own = (message: AssistantMessage): KeptReasoning | null => {
    const kept = keptIn(message);
    return kept?.provider === provider ? kept : null;
  };
  const always =
    replay === 'Auto' &&
    prompt.some(
      (message) => message.role === 'assistant' && hasCalls(message) && own(message)?.member === 'reasoning_content',
    );
  return prompt.flatMap((message): Message[] => {
    if (message.role !== 'assistant') return [message];
    const content = message.content.filter((part) =>
      replay === undefined ? !isOurs(part) : part.type !== 'reasoning',
    );
    if (content.length === 0) return [];
    const isCall = hasCalls(message);
    const members =
      replay === 'Auto'
        ? membersAsSent(own(message), isCall, always)
        : isExplicit
          ? membersFor(replay, keptIn(message), isCall)
          : {};
    if (Object.keys(members).length === 0) return [{ ...message, content }];
    return [{ ...message, content, providerOptions: { ...message.providerOptions, [libraryKey]: members } }];
  });
};
