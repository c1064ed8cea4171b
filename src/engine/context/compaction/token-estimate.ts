import type { ChatMessage, ContentPart } from '../chat-message.ts';

// The exact vocabulary takes some 100 MB and a thread of its own, and its answer would stand between every two model
// calls. Compaction compares with a threshold, so a count in one pass over the text is enough: for prose, code and
// JSON it is within a quarter of o200k_base, on the high side where it errs.
const word =
  /\p{Script=Latin}+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+|\p{N}+|[\p{L}\p{M}]+|[^\s\p{L}\p{M}\p{N}]+/gu;
const latinPerToken = 7;
const kinds = [
  { pattern: /^\p{Script=Latin}/u, perToken: latinPerToken },
  // Words of one or two characters.
  { pattern: /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u, perToken: 1.4 },
  { pattern: /^\p{N}/u, perToken: 2.5 },
  { pattern: /^[\p{L}\p{M}]/u, perToken: 4 },
];
const signsPerToken = 2;
/** What no language writes in one word is an encoding, which the vocabulary cuts into small pieces. */
const longestWord = 32;
const encodedPerToken = 2;

/** Tokens of role, markers and names around a message. */
const perMessage = 4;
/** What a picture or file counts, whatever its size. */
const perAttachment = 1024;

const tokensOfWord = (text: string): number => {
  const perToken = kinds.find(({ pattern }) => pattern.test(text))?.perToken ?? signsPerToken;
  if (perToken !== latinPerToken || text.length <= longestWord) return Math.ceil(text.length / perToken);
  return Math.ceil(text.length / encodedPerToken);
};

/** Tokens of a text, about. */
export const textTokens = (text: string): number => {
  let tokens = 0;
  for (const [part] of text.matchAll(word)) tokens += tokensOfWord(part);
  return tokens;
};

const partTokens = (part: ContentPart): number => {
  switch (part.type) {
    case 'Text':
    case 'Reasoning':
    case 'Document':
      return textTokens(part.text);
    case 'ToolCall':
      return textTokens(part.toolName) + textTokens(JSON.stringify(part.arguments));
    case 'ToolResult':
      return textTokens(part.toolName) + textTokens(part.result ?? part.errorMessage ?? '');
    case 'HostedCall':
      return textTokens(JSON.stringify(part.arguments));
    case 'HostedResult':
      return textTokens(JSON.stringify(part.result));
    case 'ApprovalRequest':
    case 'ApprovalResponse':
      // Never sent to a model.
      return 0;
    case 'Attachment':
      return perAttachment;
  }
};

// A message never changes, and a run asks before every model call.
const counted = new WeakMap<ChatMessage, number>();

/** Tokens of a stored message, about. */
export const messageTokens = (message: ChatMessage): number =>
  counted.getOrInsertComputed(message, ({ contents }) =>
    contents.reduce((sum, part) => sum + partTokens(part), perMessage),
  );
