import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { ModelJson, ModelPrompt, ModelProviderKind } from './model-provider.ts';

/** Our own key among the vendors' metadata: which kind of provider made a part. */
const namespace = 'acp';

/** Marks a part of a tool that a provider executed, since no other kind of provider can read it. */
export const hostedBy = (
  kind: ModelProviderKind,
  metadata: SharedV4ProviderMetadata | undefined,
): SharedV4ProviderMetadata => ({ ...metadata, [namespace]: { kind } });

type Message = ModelPrompt[number];
type AssistantPart = Extract<Message, { role: 'assistant' }>['content'][number];

/** Results among an assistant's parts are always the provider's own: ours have messages of their own. */
const isHosted = (part: AssistantPart): boolean =>
  part.type === 'tool-result' || (part.type === 'tool-call' && part.providerExecuted === true);

const madeBy = (part: AssistantPart, kind: ModelProviderKind): boolean =>
  part.providerOptions?.[namespace]?.['kind'] === kind;

/** The metadata as the vendor's library gave it. */
const unmarked = <P extends AssistantPart>(part: P): P => {
  const { [namespace]: _ours, ...vendor } = part.providerOptions ?? {};
  return { ...part, providerOptions: vendor };
};

/**
 * The prompt without the parts of provider-executed tools that this provider cannot take back: those of another kind of
 * provider, and all of them where `keeps` is false.
 */
export const withOwnHostedParts = (prompt: ModelPrompt, kind: ModelProviderKind, keeps: boolean): ModelPrompt => {
  if (!prompt.some((message) => message.role === 'assistant' && message.content.some(isHosted))) return prompt;
  return prompt.flatMap((message): Message[] => {
    if (message.role !== 'assistant') return [message];
    const content = message.content.flatMap((part): AssistantPart[] => {
      if (!isHosted(part)) return [part];
      return keeps && madeBy(part, kind) ? [unmarked(part)] : [];
    });
    return content.length === 0 ? [] : [{ ...message, content }];
  });
};

/** From where on the assistant has not been followed by a user: a search that is open there continues with the answer. */
const openEnd = (prompt: ModelPrompt): number => prompt.findLastIndex(({ role }) => role === 'user') + 1;

const idsOf = (prompt: ModelPrompt, type: 'tool-call' | 'tool-result'): ReadonlySet<string> =>
  new Set(
    prompt.flatMap((message) =>
      message.role === 'assistant'
        ? message.content.flatMap((part) => (part.type === type && isHosted(part) ? [part.toolCallId] : []))
        : [],
    ),
  );

/**
 * The prompt without searches whose call or result is missing, because an answer or a compaction ended between them.
 * Only Anthropic takes a call that has no result yet, in the answer that it has paused.
 */
export const completeHostedParts = (prompt: ModelPrompt, kind: ModelProviderKind): ModelPrompt => {
  const made = idsOf(prompt, 'tool-call');
  const ended = idsOf(prompt, 'tool-result');
  if (made.size === ended.size && made.isSubsetOf(ended)) return prompt;
  const open = kind === 'anthropic' ? openEnd(prompt) : prompt.length;
  return prompt.map((message, index): Message => {
    if (message.role !== 'assistant') return message;
    const isPaired = (part: AssistantPart): boolean => {
      if (!isHosted(part)) return true;
      if (part.type === 'tool-result') return made.has(part.toolCallId);
      return part.type !== 'tool-call' || index >= open || ended.has(part.toolCallId);
    };
    return { ...message, content: message.content.filter(isPaired) };
  });
};

/** A result without what only its provider can read, such as the encrypted text of the pages. */
export const readableResult = (result: ModelJson): ModelJson => {
  if (Array.isArray(result)) return result.map(readableResult);
  if (typeof result !== 'object' || result === null) return result;
  return Object.fromEntries(
    Object.entries(result).flatMap(([name, value]) =>
      name === 'encryptedContent' || value === undefined ? [] : [[name, readableResult(value)]],
    ),
  );
};
