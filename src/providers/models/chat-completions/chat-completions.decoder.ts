import { StringDecoder } from 'node:string_decoder';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { eventFailure, httpFailure, MalformedAnswerError, unfinished, wireFailure } from '../call-failure.ts';
import type { CallScope } from '../call-scope.ts';
import { finishPart } from '../library-parts.ts';
import type { ModelFinishReason, ModelPart } from '../model-provider.ts';
import { chatUsage } from '../model-usage.ts';
import type { WireFailure, WireHeaders, WireSink } from '../transport/wire-exchange.ts';
import { ToolCallAssembly, type ToolCallDelta } from './tool-call-assembly.ts';

interface ChatChunk {
  readonly model?: unknown;
  readonly choices?: unknown;
  readonly usage?: unknown;
  readonly error?: unknown;
}

interface ChatChoice {
  readonly index?: unknown;
  readonly finish_reason?: unknown;
  readonly delta?: ChatDelta | null;
}

interface ChatDelta {
  readonly content?: unknown;
  readonly refusal?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly tool_calls?: readonly ToolCallDelta[] | null;
}

export interface DecodedParts {
  /** An event came, whether or not it makes a part. */
  arrived(): void;
  push(part: ModelPart): void;
  /** The answer is complete and its last part was pushed. */
  end(): void;
  fail(error: unknown): void;
  /** The connection has nothing more to say about this answer. */
  closed(): void;
}

const maxErrorBytes = 64 * 1024;

/**
 * Reads the streamed answer of chat completions: `data:` events with `chat.completion.chunk` objects, then `[DONE]`.
 * Takes the bytes as they come from the socket; the vendor library sends each event through five web streams,
 * which costs more CPU than all the rest of a call.
 */
export class ChatCompletionsDecoder implements WireSink {
  readonly #scope: CallScope;
  readonly #out: DecodedParts;
  readonly #text = new StringDecoder('utf8');
  readonly #events: EventSourceParser;
  readonly #tools: ToolCallAssembly;
  #errorBody: Buffer[] | null = null;
  #errorBytes = 0;
  #done = false;
  #reasoning = false;
  #hasText = false;
  #refused = false;
  #finishReason: string | null = null;
  #usage: unknown = null;
  #model: string | null = null;

  constructor(scope: CallScope, out: DecodedParts, namespace: string) {
    this.#scope = scope;
    this.#out = out;
    this.#tools = new ToolCallAssembly(namespace);
    this.#events = createParser({
      onEvent: (event) => this.#event(event.data),
    });
  }

  head(status: number, headers: WireHeaders): void {
    this.#scope.status = status;
    this.#scope.headers = headers;
    this.#scope.begun();
    if (status < 200 || status > 299) this.#errorBody = [];
  }

  data(chunk: Buffer): void {
    if (this.#done) return;
    if (this.#errorBody === null) {
      if (this.#scope.took(chunk.byteLength)) this.#events.feed(this.#text.write(chunk));
      else this.#tooLarge();
    } else if (this.#errorBytes < maxErrorBytes) {
      this.#errorBytes += chunk.byteLength;
      this.#errorBody.push(chunk);
    } else this.end();
  }

  end(): void {
    if (this.#done) this.#out.closed();
    else if (this.#errorBody !== null)
      this.#fail(httpFailure(this.#scope, this.#scope.status ?? 500, Buffer.concat(this.#errorBody).toString()));
    else {
      // Servers that send no `[DONE]` end the body after the last chunk, some without its blank line.
      this.#events.feed('\n\n');
      this.#complete();
      this.#out.closed();
    }
  }

  fail(failure: WireFailure): void {
    if (this.#done) this.#out.closed();
    else if (this.#errorBody === null) this.#fail(wireFailure(this.#scope.provider, failure));
    else this.end();
  }

  #fail(error: unknown): void {
    if (!this.#done) {
      this.#done = true;
      this.#out.fail(error);
    }
  }

  #tooLarge(): void {
    this.#fail(wireFailure(this.#scope.provider, { kind: 'too-large', cause: undefined }));
  }

  /** Before anything is kept. False: there is no room for it, and the call has failed. */
  #fits(size: number): boolean {
    if (this.#done) return false;
    const fits = this.#scope.grew(size);
    if (!fits) this.#tooLarge();
    return fits;
  }

  #event(data: string): void {
    if (this.#done) return;
    this.#out.arrived();
    if (data === '[DONE]') {
      this.#complete();
      return;
    }
    let chunk: ChatChunk | null;
    try {
      chunk = JSON.parse(data);
    } catch (error) {
      this.#fail(new MalformedAnswerError('An event is not JSON', { cause: error }));
      return;
    }
    if (typeof chunk === 'object' && chunk !== null) this.#chunk(chunk);
    else this.#fail(new MalformedAnswerError('An event is not a JSON object'));
  }

  #chunk(chunk: ChatChunk): void {
    if (chunk.error !== undefined && chunk.error !== null) {
      this.#fail(eventFailure(this.#scope, chunk));
      return;
    }
    if (this.#model === null && typeof chunk.model === 'string' && chunk.model !== '') this.#model = chunk.model;
    if (chunk.usage !== undefined && chunk.usage !== null) this.#usage = chunk.usage;
    // The service asks for one choice; of a server that sends more the first is the answer.
    const choice = Array.isArray(chunk.choices) ? (chunk.choices[0] as ChatChoice | undefined) : undefined;
    if (choice === undefined || (typeof choice.index === 'number' && choice.index !== 0)) return;
    if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason;
    if (choice.delta !== undefined && choice.delta !== null) this.#delta(choice.delta);
  }

  #delta(delta: ChatDelta): void {
    const content = delta.content;
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (typeof reasoning === 'string') this.#reason(reasoning);
    if (typeof content === 'string') this.#say(content);
    else if (Array.isArray(content)) this.#contentParts(content);
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      this.#refused = true;
      this.#say(delta.refusal);
    }
    if (Array.isArray(delta.tool_calls)) {
      this.#endReasoning();
      for (const call of delta.tool_calls as readonly ToolCallDelta[]) {
        if (!this.#fits(this.#tools.add(call))) return;
      }
    }
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

  #complete(): void {
    if (this.#done) return;
    if (this.#finishReason === null) {
      this.#fail(unfinished(this.#scope.provider));
      return;
    }
    try {
      this.#endReasoning();
      const calls = this.#tools.complete();
      const last = finishPart({
        provider: this.#scope.provider,
        reason: this.#wireFinish(this.#finishReason),
        usage: chatUsage(this.#usage),
        raw: this.#usage,
        responseModel: this.#model,
        hasToolCalls: calls.length > 0,
        hasOutput: this.#hasText || calls.length > 0,
      });
      for (const call of calls) this.#out.push(call);
      this.#out.push(last);
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#done = true;
    this.#out.end();
  }

  #wireFinish(wire: string): ModelFinishReason {
    switch (wire) {
      case 'length':
        return 'Length';
      case 'tool_calls':
      case 'function_call':
        return 'ToolCalls';
      case 'content_filter':
        return 'ContentFilter';
      default:
        return this.#refused ? 'ContentFilter' : 'Stop';
    }
  }
}
