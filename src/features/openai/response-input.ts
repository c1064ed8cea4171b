import { AcpError, invalidField } from '../../contract/errors.ts';
import type { Json } from '../../contract/schema.ts';
import { parsedArguments } from '../../core/documents/json-depth.ts';
import { type GivenInput, splitInput } from './chat-input.ts';
import {
  fileOf,
  type GivenCall,
  type GivenFile,
  type GivenMessage,
  type GivenParts,
  GivenTotals,
} from './given-parts.ts';
import type { IsKept } from './kept-items.ts';
import { OpenCalls } from './open-calls.ts';
import type { InputItem, InputPart, ResponseRequest } from './responses.schema.ts';
import { ResultFiles } from './result-files.ts';

/** The result of a call that an earlier response has left to the caller's program. */
export interface GivenAnswer {
  readonly callId: string;
  readonly result: string;
  /** Where in the request its item is. */
  readonly path: string;
}

export interface ResponseInput extends GivenInput {
  /** Empty: no earlier call is answered. */
  readonly answers: readonly GivenAnswer[];
}

const partOf = (part: InputPart, path: string): string | GivenFile => {
  const { type } = part;
  if (type === 'input_text' || type === 'output_text') return part.text ?? '';
  if (type === 'refusal') return part.refusal ?? '';
  const name = part.filename ?? null;
  if (type === 'input_image') return fileOf({ id: part.file_id, url: part.image_url, name }, path, 'image_url');
  if (type === 'input_audio' && part.input_audio !== undefined)
    return fileOf(
      { data: part.input_audio.data, name: `audio.${part.input_audio.format}` },
      `${path}.input_audio`,
      'data',
    );
  if (type !== 'input_file')
    throw invalidField(`${path}.type`, 'must be input_text, input_image, input_file, input_audio or output_text');
  if (part.file_url != null) throw invalidField(`${path}.file_url`, 'is not offered, since no address is fetched');
  return fileOf({ id: part.file_id, data: part.file_data, name }, path, 'file_data');
};

const partsOf = (content: InputItem['content'], path: string, totals: GivenTotals): GivenParts => {
  if (typeof content === 'string') return { text: content, files: [] };
  totals.parts(content, path);
  const parts = (content ?? []).map((part, index) => partOf(part, `${path}[${index}]`));
  const files = parts.filter((part) => typeof part !== 'string');
  totals.files(files.length, path);
  return { text: parts.filter((part) => typeof part === 'string').join('\n'), files };
};

const textOf = (content: InputItem['content'], path: string, totals: GivenTotals): string => {
  const { text, files } = partsOf(content, path, totals);
  if (files.length > 0) throw invalidField(path, 'must be text');
  return text;
};

/** What is neither said nor asked for, and comes back from clients that send what they were sent. */
const dropped: ReadonlySet<string> = new Set(['reasoning', 'mcp_call']);

class Reader {
  readonly instructions: string[] = [];
  readonly given: GivenMessage[] = [];
  readonly answers: GivenAnswer[] = [];
  readonly #totals = new GivenTotals();
  readonly #open = new OpenCalls();
  readonly #files = new ResultFiles();
  readonly #isKept: IsKept;
  /** Calls of the history that came again and have their results there. */
  readonly #repeated = new Set<string>();
  readonly #answered = new Set<string>();
  /** Calls of the last assistant message in `given`: one list that grows, or many calls would be copied for each of them. */
  #calls: GivenCall[] = [];

  constructor(isKept: IsKept) {
    this.#isKept = isKept;
  }

  take(item: InputItem, path: string): void {
    const type = item.type ?? 'message';
    if (dropped.has(type) || this.#isRepeated(item)) return;
    if (type !== 'function_call_output') this.end();
    if (type === 'message') this.#message(item, path);
    else if (type === 'function_call') this.#call(item, path);
    else if (type === 'function_call_output') this.#output(item, path);
    else
      throw invalidField(
        `${path}.type`,
        'must be message, item_reference, or the call or output of a function, a custom_tool or a tool_search',
      );
  }

  /** The results that stand together are known. */
  end(): void {
    this.#files.moveTo(this.given);
  }

  /** Whether the history has the item. The result of a call of it is new as long as that waits for one. */
  #isRepeated(item: InputItem): boolean {
    const { type, call_id: callId } = item;
    if (type === 'function_call_output' && this.#repeated.delete(callId ?? '')) return true;
    const kept = this.#isKept(item);
    if (type === 'function_call' && kept === 'Done' && typeof callId === 'string') this.#repeated.add(callId);
    if (type === 'function_call' && kept === 'Waiting') this.#forgetText();
    return kept !== null;
  }

  /** What an assistant says before its call is in the history with the call. */
  #forgetText(): void {
    const last = this.given.at(-1);
    if (last?.role === 'Assistant' && last.calls.length === 0) this.given.pop();
  }

  #message({ role, content }: InputItem, path: string): void {
    if (role === 'system' || role === 'developer')
      this.instructions.push(textOf(content, `${path}.content`, this.#totals));
    else if (role === 'user') this.given.push({ role: 'User', ...partsOf(content, `${path}.content`, this.#totals) });
    else if (role === 'assistant') this.#assistant(textOf(content, `${path}.content`, this.#totals));
    else throw invalidField(`${path}.role`, 'must be user, assistant, system or developer');
  }

  #assistant(text: string): void {
    this.#calls = [];
    this.given.push({ role: 'Assistant', text, calls: this.#calls });
  }

  /** A call belongs to what the assistant has said before it. */
  #call({ call_id: callId, name, arguments: text }: InputItem, path: string): void {
    if (typeof callId !== 'string' || typeof name !== 'string') throw invalidField(path, 'must have call_id and name');
    if (text !== undefined && text !== null && typeof text !== 'string')
      throw invalidField(`${path}.arguments`, 'must be a text');
    this.#open.called(callId, name, `${path}.call_id`);
    if (this.given.at(-1)?.role !== 'Assistant') this.#assistant('');
    this.#calls.push({ callId, toolName: name, arguments: parsedArguments(text ?? '') as Json });
  }

  #output({ call_id: callId, output }: InputItem, path: string): void {
    if (typeof callId !== 'string') throw invalidField(`${path}.call_id`, 'is required');
    if (output === undefined || output === null) throw invalidField(`${path}.output`, 'is required');
    const result = this.#files.take(callId, partsOf(output, `${path}.output`, this.#totals));
    const toolName = this.#open.answered(callId, `${path}.call_id`);
    if (toolName !== null) {
      this.given.push({ role: 'Tool', callId, toolName, result });
      return;
    }
    if (this.#answered.has(callId)) throw invalidField(`${path}.call_id`, 'has a result already');
    this.#answered.add(callId);
    this.answers.push({ callId, result, path });
  }
}

const isEmpty = ({ text, files }: GivenParts): boolean => text.trim() === '' && files.length === 0;

const required = (): AcpError =>
  new AcpError('message-required', 'The input says nothing.', {
    details: { errors: [{ path: 'input', message: 'is required' }] },
  });

/** With answers the turn goes on: what the user says with them is one message behind them. */
const besideAnswers = (given: readonly GivenMessage[]): GivenMessage[] => {
  const parts = given.map((message) => {
    if (message.role !== 'User') throw invalidField('input', 'must not bring earlier answers together with results');
    return message;
  });
  if (parts.length === 0) return [];
  return [{ role: 'User', text: parts.map(({ text }) => text).join('\n'), files: parts.flatMap(({ files }) => files) }];
};

export const responseInput = (
  input: ResponseRequest['input'] | undefined,
  instructions: ResponseRequest['instructions'] | undefined,
  isKept: IsKept,
): ResponseInput => {
  const reader = new Reader(isKept);
  if (typeof instructions === 'string') reader.instructions.push(instructions);
  if (typeof input === 'string') reader.given.push({ role: 'User', text: input, files: [] });
  else for (const [index, item] of (input ?? []).entries()) reader.take(item, `input[${index}]`);
  reader.end();
  const { answers } = reader;
  const given = answers.length === 0 ? reader.given : besideAnswers(reader.given);
  const turn = splitInput(given, reader.instructions);
  const last = given.at(-1);
  if (answers.length === 0 && (last === undefined || (last.role === 'User' && isEmpty(last)))) throw required();
  if (answers.length === 0 && last?.role === 'Assistant')
    throw invalidField('input', "must end with the user's message or the result of a call");
  return { ...turn, answers };
};
