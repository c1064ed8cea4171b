import { AcpError, invalidField } from '../../contract/errors.ts';
import type { Json } from '../../contract/schema.ts';
import { parsedArguments } from '../../core/documents/json-depth.ts';
import type { ChatCompletionMessage, ChatPart } from './chat.schema.ts';
import {
  fileOf,
  type GivenCall,
  type GivenFile,
  type GivenMessage,
  type GivenParts,
  GivenTotals,
} from './given-parts.ts';
import { OpenCalls } from './open-calls.ts';
import { refused } from './request.rules.ts';
import { ResultFiles } from './result-files.ts';

/** What a request says: what went before, the next message of the user, and what follows the agent's instructions. */
export interface GivenInput {
  readonly history: readonly GivenMessage[];
  /** Null: the last thing that was said is a tool's, in the history. */
  readonly message: GivenParts | null;
  readonly instructions: string | null;
}

/** The last user message is what the run begins with. */
export const splitInput = (messages: readonly GivenMessage[], instructions: readonly string[]): GivenInput => {
  const last = messages.at(-1);
  const said = instructions.filter((text) => text.trim() !== '');
  return {
    history: last?.role === 'User' ? messages.slice(0, -1) : messages,
    message: last?.role === 'User' ? last : null,
    instructions: said.length === 0 ? null : said.join('\n\n'),
  };
};

const filePart = (part: ChatPart, path: string): GivenFile => {
  if (part.type === 'image_url' && part.image_url !== undefined)
    return fileOf({ url: part.image_url.url }, `${path}.image_url`, 'url');
  if (part.type === 'input_audio' && part.input_audio !== undefined)
    return fileOf(
      { data: part.input_audio.data, name: `audio.${part.input_audio.format}` },
      `${path}.input_audio`,
      'data',
    );
  if (part.type === 'file' && part.file !== undefined) {
    const { file_id: id, file_data: data, filename: name } = part.file;
    return fileOf({ id, data, name }, `${path}.file`, 'file_data');
  }
  throw invalidField(`${path}.type`, 'must be text, image_url, input_audio or file, with the member of that name');
};

const partsOf = ({ role, content }: ChatCompletionMessage, path: string, totals: GivenTotals): GivenParts => {
  if (typeof content === 'string') return { text: content, files: [] };
  totals.parts(content, `${path}.content`);
  const texts: string[] = [];
  const files: GivenFile[] = [];
  for (const [index, part] of (content ?? []).entries()) {
    if (part.type === 'text') texts.push(part.text ?? '');
    else if (part.type === 'refusal' && role === 'assistant') texts.push(part.refusal ?? '');
    else files.push(filePart(part, `${path}.content[${index}]`));
  }
  totals.files(files.length, `${path}.content`);
  return { text: texts.join('\n'), files };
};

const textOf = (message: ChatCompletionMessage, path: string, totals: GivenTotals): string => {
  const { text, files } = partsOf(message, path, totals);
  if (files.length > 0) throw invalidField(`${path}.content`, 'must be text');
  return text;
};

/** What the assistant has said, or why it would not. */
const saidIn = (message: ChatCompletionMessage, path: string, totals: GivenTotals): string => {
  for (const name of ['function_call', 'audio'] as const)
    if (message[name] !== undefined && message[name] !== null) throw refused(`${path}.${name}`, 'is not offered');
  const text = textOf(message, path, totals);
  return text === '' ? (message.refusal ?? '') : text;
};

const callsIn = (message: ChatCompletionMessage, path: string, open: OpenCalls): readonly GivenCall[] =>
  (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, index) => {
    open.called(id, name, `${path}.tool_calls[${index}].id`);
    return { callId: id, toolName: name, arguments: parsedArguments(text) as Json };
  });

const isUserOrTool = (role: string | undefined): boolean => role === 'user' || role === 'tool';

const assertSaid = ({ message }: GivenInput, path: string): void => {
  if (message === null || message.text.trim() !== '' || message.files.length > 0) return;
  throw new AcpError('message-required', 'The last message says nothing.', {
    details: { errors: [{ path, message: 'is required' }] },
  });
};

/** The messages of a chat request; throws for what no conversation can have. */
export const chatInput = (messages: readonly ChatCompletionMessage[]): GivenInput => {
  if (messages.length === 0) throw invalidField('messages', 'must have at least one message');
  if (!isUserOrTool(messages.at(-1)?.role))
    throw invalidField(`messages[${messages.length - 1}].role`, 'must be user or tool for the last message');
  const instructions: string[] = [];
  const given: GivenMessage[] = [];
  const totals = new GivenTotals();
  const open = new OpenCalls();
  const returned = new ResultFiles();
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`;
    if (message.role !== 'tool') returned.moveTo(given);
    if (message.role === 'system' || message.role === 'developer') instructions.push(textOf(message, path, totals));
    else if (message.role === 'user') given.push({ role: 'User', ...partsOf(message, path, totals) });
    else if (message.role === 'assistant') {
      totals.calls(message.tool_calls?.length ?? 0, `${path}.tool_calls`);
      given.push({ role: 'Assistant', text: saidIn(message, path, totals), calls: callsIn(message, path, open) });
    } else if (message.role === 'tool') {
      const callId = message.tool_call_id ?? '';
      const toolName = open.answered(callId, `${path}.tool_call_id`);
      if (toolName === null)
        throw invalidField(`${path}.tool_call_id`, 'must be the id of a call in an earlier assistant message');
      given.push({ role: 'Tool', callId, toolName, result: returned.take(callId, partsOf(message, path, totals)) });
    } else throw invalidField(`${path}.role`, 'must be system, developer, user, assistant or tool');
  }
  returned.moveTo(given);
  const input = splitInput(given, instructions);
  assertSaid(input, `messages[${messages.length - 1}].content`);
  return input;
};
