import { createParser } from 'eventsource-parser';
import {
  countedJson,
  ForeignJsonError,
  foreignEventLimits,
  parseForeignJson,
} from '../../../core/documents/foreign-json.ts';
import type { JsonLimits } from '../../../core/documents/json-shape.ts';
import { eventFailure, MalformedAnswerError, unfinished, wireFailure } from '../call-failure.ts';
import type { CallScope } from '../call-scope.ts';
import { finishMeaning, type GoodEnd } from '../finish-reasons.ts';
import { finishPart } from '../library-parts.ts';
import type { ModelPart } from '../model-provider.ts';
import { chatUsage, laterUsage, usageIn } from '../model-usage.ts';
import { chatNamespace } from '../surfaces/openai.surface.ts';
import type { Surface } from '../surfaces/surface.ts';
import { type Source, searchParts } from '../web-search-parts.ts';
import { ChatReasoning } from './chat-reasoning.ts';
import { ToolCallAssembly, type ToolCallDelta } from './tool-call-assembly.ts';

/** A `chat.completion.chunk`, or the `chat.completion` that an answer is when it comes at once. */
export interface ChatBody {
  readonly model?: unknown;
  readonly choices?: unknown;
  readonly usage?: unknown;
  readonly x_groq?: unknown;
  readonly error?: unknown;
}

interface ChatChoice {
  readonly index?: unknown;
  readonly finish_reason?: unknown;
  /** Of a chunk. */
  readonly delta?: ChatText | null;
  /** Of an answer that comes at once. */
  readonly message?: ChatText | null;
}

interface ChatText {
  readonly content?: unknown;
  readonly refusal?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly reasoning_details?: unknown;
  readonly tool_calls?: readonly ToolCallDelta[] | null;
  readonly annotations?: unknown;
}

interface Annotation {
  readonly url_citation?: { readonly url?: unknown; readonly title?: unknown } | null;
}

/** How the endpoint speaks. */
export type ChatDialect = Pick<Surface, 'kind' | 'finishReasons' | 'reasoningReplay'>;

export interface ChatAnswerSink {
  push(part: ModelPart): void;
  /** Nothing more comes of this answer. */
  fail(error: unknown): void;
}

/** Puts one answer of chat completions together, from the chunks of a stream or from one whole body. */
export class ChatAnswer {
  readonly #scope: CallScope;
  readonly #out: ChatAnswerSink;
  readonly #tools: ToolCallAssembly;
  readonly #dialect: ChatDialect;
  readonly #returned = new ChatReasoning();
  #isOver = false;
  #hasChoice = false;
  #hasDeltas = false;
  #reasoning = false;
  #hasText = false;
  #refused = false;
  #finishReason: string | null = null;
  #usage: unknown = null;
  #model: string | null = null;
  #sources: Source[] | null = null;

  constructor(scope: CallScope, out: ChatAnswerSink, dialect: ChatDialect) {
    this.#scope = scope;
    this.#out = out;
    this.#dialect = dialect;
    this.#tools = new ToolCallAssembly(chatNamespace(dialect));
  }

  /** Whether it is complete or has failed; what comes after that is not looked at. */
  get isOver(): boolean {
    return this.#isOver;
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#out.fail(error);
  }

  tooLarge(): void {
    this.fail(wireFailure(this.#scope.provider, { kind: 'too-large', cause: undefined }));
  }

  /** The answer as one document. True: it is complete. */
  readDocument(text: string): boolean {
    this.read(text, 'The answer', countedJson);
    if (this.#isOver) return false;
    // Of a stream this means that it broke off; a whole body is just none of these answers.
    if (!this.#hasChoice) this.fail(new MalformedAnswerError('The answer has no choice'));
    return this.complete(false);
  }

  /** The answer as the events of a stream that has ended. True: it is complete. */
  readEvents(text: string): boolean {
    let saidDone = false;
    const events = createParser({
      onEvent: ({ data }) => {
        if (data === '[DONE]') saidDone = true;
        else if (!saidDone) this.read(data, 'An event', foreignEventLimits);
      },
    });
    events.feed(`${text}\n\n`);
    return this.complete(saidDone);
  }

  /** `what` names the text in the failure of one that holds no JSON object; `limits`: what it may hold. */
  read(text: string, what: string, limits: JsonLimits): void {
    if (this.#isOver) return;
    let body: ChatBody | null;
    try {
      body = parseForeignJson(text, limits) as ChatBody | null;
    } catch (error) {
      if (error instanceof ForeignJsonError) {
        this.fail(wireFailure(this.#scope.provider, { kind: 'too-large', cause: error }));
        return;
      }
      this.fail(new MalformedAnswerError(`${what} is not JSON`, { cause: error }));
      return;
    }
    if (typeof body === 'object' && body !== null) this.#taken(body);
    else this.fail(new MalformedAnswerError(`${what} is not a JSON object`));
  }

  #taken(body: ChatBody): void {
    try {
      this.#take(body);
    } catch (error) {
      this.fail(error);
    }
  }

  #take(body: ChatBody): void {
    if (body.error !== undefined && body.error !== null) {
      this.fail(eventFailure(this.#scope, body));
      return;
    }
    if (this.#model === null && typeof body.model === 'string' && body.model !== '') this.#model = body.model;
    // The service asks for one choice; of a server that sends more the first is the answer.
    const choice = Array.isArray(body.choices) ? (body.choices[0] as ChatChoice | null | undefined) : undefined;
    const usage = usageIn(body, choice);
    if (usage !== null) this.#usage = laterUsage(this.#usage, usage);
    if (choice === undefined || choice === null || (typeof choice.index === 'number' && choice.index !== 0)) return;
    this.#hasChoice = true;
    const reason = choice.finish_reason;
    // Some servers write an empty text, or the word, where others write null.
    if (typeof reason === 'string' && reason !== '' && reason !== 'null') this.#finishReason = reason;
    const isWhole = (choice.delta ?? null) === null;
    const text = choice.delta ?? choice.message;
    if (text === undefined || text === null) return;
    // A stream may end with the whole message, which says all of it once more.
    if (!isWhole || !this.#hasDeltas) this.#add(text, isWhole);
    else if (Array.isArray(text.tool_calls)) this.#addCalls(text.tool_calls, true);
    this.#hasDeltas ||= !isWhole;
  }

  #add(added: ChatText, isWhole: boolean): void {
    const content = added.content;
    const reasoning = added.reasoning_content ?? added.reasoning;
    if (typeof reasoning === 'string') this.#reason(reasoning);
    if (this.#returnsReasoning) this.#fits(this.#returned.add(added));
    if (typeof content === 'string') this.#say(content);
    else if (Array.isArray(content)) this.#contentParts(content);
    if (typeof added.refusal === 'string' && added.refusal !== '') {
      this.#refused = true;
      this.#say(added.refusal);
    }
    if (Array.isArray(added.annotations)) this.#cite(added.annotations);
    if (Array.isArray(added.tool_calls)) this.#addCalls(added.tool_calls, isWhole);
  }

  #addCalls(calls: readonly ToolCallDelta[], isWhole: boolean): void {
    for (const [index, call] of calls.entries()) {
      // In a whole answer each entry is a call of its own, whatever it leaves out.
      if (!this.#fits(this.#tools.add(isWhole ? { ...call, index } : call))) return;
    }
  }

  get #returnsReasoning(): boolean {
    const { reasoningReplay } = this.#dialect;
    return reasoningReplay !== undefined && reasoningReplay !== 'None';
  }

  /** Pages that the answer rests on, of models that search by themselves. */
  #cite(annotations: readonly (Annotation | null)[]): void {
    for (const annotation of annotations) {
      const { url, title } = annotation?.url_citation ?? {};
      if (typeof url !== 'string' || !this.#fits(url.length + (typeof title === 'string' ? title.length : 0))) continue;
      this.#sources ??= [];
      this.#sources.push({ url, ...(typeof title === 'string' && { title }) });
    }
  }

  /** Before anything is kept. False: there is no room for it, and the call has failed. */
  #fits(size: number): boolean {
    if (this.#isOver) return false;
    const fits = this.#scope.grew(size);
    if (!fits) this.tooLarge();
    return fits;
  }

  /** Some servers send lists of `text` and `thinking` parts instead of a text. */
  #contentParts(parts: readonly { type?: unknown; text?: unknown; thinking?: unknown }[]): void {
    for (const part of parts) {
      if (part?.type === 'text' && typeof part.text === 'string') this.#say(part.text);
      else if (part?.type === 'thinking' && Array.isArray(part.thinking)) {
        for (const thought of part.thinking) typeof thought?.text === 'string' && this.#reason(thought.text);
      }
    }
  }

  #say(text: string): void {
    if (text !== '' && this.#fits(text.length)) {
      this.#endReasoning();
      this.#hasText = true;
      this.#out.push({ type: 'text-delta', text });
    }
  }

  #reason(text: string): void {
    if (text !== '' && this.#fits(text.length)) {
      this.#reasoning = true;
      this.#out.push({ type: 'reasoning-delta', text });
    }
  }

  #endReasoning(): void {
    if (this.#reasoning) {
      this.#reasoning = false;
      this.#out.push({ type: 'reasoning-end' });
    }
  }

  /**
   * Nothing more will be read. True: the answer is complete and its last part was pushed; false: it has failed.
   * `saidDone`: the server has said that it is complete.
   */
  complete(saidDone: boolean): boolean {
    if (this.#isOver) return false;
    try {
      const reason = this.#meaning(saidDone);
      const calls = this.#tools.complete();
      const last = finishPart({
        provider: this.#scope.provider,
        reason,
        usage: chatUsage(this.#usage),
        raw: this.#usage,
        responseModel: this.#model,
        hasToolCalls: calls.length > 0,
        hasOutput: this.#hasText || calls.length > 0,
      });
      const returned = this.#returned.part(this.#dialect, this.#scope.provider, calls.length > 0);
      if (returned === null) this.#endReasoning();
      else this.#out.push(returned);
      for (const call of calls) this.#out.push(call);
      if (this.#sources !== null) for (const part of searchParts([], this.#sources)) this.#out.push(part);
      this.#out.push(last);
    } catch (error) {
      this.fail(error);
      return false;
    }
    this.#isOver = true;
    return true;
  }

  #meaning(saidDone: boolean): GoodEnd {
    if (this.#finishReason === null) {
      // Only what is complete in itself: half a call is none, whatever the server says.
      const isComplete = this.#tools.isEmpty ? this.#hasText : this.#tools.isComplete;
      if (!saidDone || !isComplete) throw unfinished(this.#scope.provider);
      return this.#refused ? 'ContentFilter' : 'Stop';
    }
    const meaning = finishMeaning(this.#dialect.finishReasons, this.#finishReason, this.#scope);
    return meaning === 'Stop' && this.#refused ? 'ContentFilter' : meaning;
  }
}
