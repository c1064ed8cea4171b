import { hash } from 'node:crypto';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { ModelCall, ModelPrompt } from '../../providers/models/model-provider.ts';

/** What a model call was sent, part by part, so that a difference can be named. */
export interface PromptHashes {
  readonly instructions: string;
  readonly tools: string;
  /** Provider, model and everything else that goes with the prompt. */
  readonly settings: string;
  readonly messages: string;
}

export const promptParts = [
  'instructions',
  'tools',
  'settings',
  'messages',
] as const satisfies readonly (keyof PromptHashes)[];

export type HashedCall = Pick<
  ModelCall,
  | 'model'
  | 'prompt'
  | 'tools'
  | 'temperature'
  | 'topP'
  | 'maxOutputTokens'
  | 'reasoningEffort'
  | 'responseFormat'
  | 'settings'
  | 'parallelToolCalls'
  | 'webSearch'
  | 'sampling'
>;

/** In the place of a text that is not kept: prompts with the mark have the hash of those with the text. */
export const redactionMark = (sha256: string, length: number): string => `[redacted sha256:${sha256} length:${length}]`;

const redactedText = /^\[redacted sha256:([\w-]{43}) length:\d+\]$/;

/** Of a text. The mark that stands for a redacted text has the hash of the text itself, so prompts still compare. */
export const textHash = (text: string): string =>
  (text.startsWith('[redacted ') ? redactedText.exec(text)?.[1] : undefined) ?? hash('sha256', text, 'base64url');

export const redacted = (text: string): string =>
  redactedText.test(text) ? text : redactionMark(textHash(text), text.length);

/** Of JSON whose order of members means nothing. */
const jsonHash = (value: Json): string => textHash(typeof value === 'string' ? value : canonicalJson(value));

const short = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);

// Instructions and settings are those of every run of an agent; a template's parameters make some of them differ.
const maxRepeated = 200;
const maxRepeatedLength = 20_000;

/** Keeps the hashes of texts that come again with the next run. */
const remembering = (of: (text: string) => string): ((text: string) => string) => {
  const hashes = new Map<string, string>();
  return (text) => {
    const earlier = hashes.get(text);
    if (earlier !== undefined) return earlier;
    const made = of(text);
    if (text.length > maxRepeatedLength) return made;
    if (hashes.size >= maxRepeated) hashes.clear();
    hashes.set(text, made);
    return made;
  };
};

const instructionsHash = remembering((text) => textHash(text).slice(0, 22));
const settingsHash = remembering(short);

// Tools and schemas of an agent are the same objects for every call of every run.
const toolHashes = new WeakMap<HashedCall['tools'], string>();

const toolsHash = (tools: HashedCall['tools']): string =>
  toolHashes.getOrInsertComputed(tools, () => short(JSON.stringify(tools)));

/** Of a call that offers no tools. */
export const noToolsHash = short('[]');

type Message = ModelPrompt[number];
type Part = Exclude<Message['content'], string>[number];

/** Calls that a prompt shows as another tool's, by their part: the hash is of what they are, whose arguments may be redacted. */
const shownAs = new WeakMap<object, { readonly toolName: string; readonly input: unknown }>();

/** A part of a prompt in which a call stands as that of another tool. */
export const shownCall = <P extends { readonly toolName: string; readonly input: unknown }>(part: P, as: P): P => {
  shownAs.set(as, part);
  return as;
};

/**
 * Reasoning is the model's own, and not always recorded, so it does not count; nor do signatures, nor tools that the
 * provider executed while it answered.
 */
const partLine = (part: Part, isAssistant: boolean, of: (text: string) => string): string => {
  switch (part.type) {
    case 'text':
      return `text ${of(part.text)}\n`;
    case 'tool-call':
      if (part.providerExecuted === true) return '';
      {
        const { toolName, input } = shownAs.get(part) ?? part;
        return `call ${part.toolCallId} ${toolName} ${jsonHash((input ?? null) as Json)}\n`;
      }
    case 'tool-result': {
      if (isAssistant) return '';
      const { output } = part;
      const value = 'value' in output ? output.value : null;
      const text = typeof value === 'string' ? of(value) : jsonHash((value ?? null) as Json);
      return `result ${part.toolCallId} ${part.toolName} ${output.type} ${text}\n`;
    }
    case 'file':
      return `file ${part.mediaType} ${part.filename ?? ''} ${'data' in part.data ? of(String(part.data.data)) : ''}\n`;
    default:
      return '';
  }
};

/** Hashes for the calls of one run: a text that went with an earlier call is not hashed again. */
export const promptHasher = () => {
  const hashes = new Map<string, string>();
  const of = (text: string): string => hashes.getOrInsertComputed(text, textHash);
  let settingsOf: string | null = null;
  const prompt = (provider: string, call: HashedCall): PromptHashes => {
    const [first] = call.prompt;
    const instructions = first?.role === 'system' ? first.content : '';
    let messages = '';
    for (const [index, { role, content }] of call.prompt.entries()) {
      if (index === 0 && role === 'system') continue;
      messages += `${role}\n`;
      if (typeof content === 'string') messages += `text ${of(content)}\n`;
      else for (const part of content) messages += partLine(part, role === 'assistant', of);
    }
    // The binding is the same for every call of a run.
    settingsOf ??= settingsHash(
      JSON.stringify([
        provider,
        call.model,
        call.temperature,
        call.topP,
        call.maxOutputTokens,
        call.reasoningEffort,
        call.responseFormat,
        canonicalJson(call.settings as Json),
        call.parallelToolCalls,
        ...(call.webSearch !== undefined ? ['web-search'] : []),
        ...(call.sampling !== undefined ? [call.sampling] : []),
      ]),
    );
    return {
      instructions: instructionsHash(instructions),
      tools: toolsHash(call.tools),
      settings: settingsOf,
      messages: short(messages),
    };
  };
  return { prompt, text: of };
};
