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
