import { StringDecoder } from 'node:string_decoder';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import { foreignEventLimits } from '../../../core/documents/foreign-json.ts';
import { httpFailure, wireFailure } from '../call-failure.ts';
import type { CallScope } from '../call-scope.ts';
import { type AnswerForm, answerForm } from '../transport/answer-form.ts';
import type { WireFailure, WireHeaders, WireSink } from '../transport/wire-exchange.ts';
import { ChatAnswer, type ChatAnswerSink, type ChatDialect } from './chat-answer.ts';

export interface DecodedParts extends ChatAnswerSink {
  /** An event came, whether or not it makes a part. */
  arrived(): void;
  /** The answer is complete and its last part was pushed. */
  end(): void;
  /** The connection has nothing more to say about this answer. */
  closed(): void;
}

const maxErrorBytes = 64 * 1024;

/**
 * Reads the streamed answer of chat completions: `data:` events with `chat.completion.chunk` objects, then `[DONE]`.
 * Takes the bytes as they come from the socket; the vendor library sends each event through five web streams,
 * which costs more CPU than all the rest of a call. Design: docs/design/model-providers.md.
 */
export class ChatCompletionsDecoder implements WireSink {
  readonly #scope: CallScope;
  readonly #out: DecodedParts;
  readonly #text = new StringDecoder('utf8');
  readonly #events: EventSourceParser;
  readonly #answer: ChatAnswer;
  #errorBody: Buffer[] | null = null;
  #errorBytes = 0;
  #form: AnswerForm | null = null;
  /** Of an answer that is one document. */
  readonly #document: Buffer[] = [];

  constructor(scope: CallScope, out: DecodedParts, dialect: ChatDialect) {
    this.#scope = scope;
    this.#out = out;
    this.#answer = new ChatAnswer(scope, out, dialect);
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
    if (this.#answer.isOver) return;
    if (this.#errorBody === null) {
      if (this.#scope.took(chunk.byteLength)) this.#take(chunk);
      else this.#answer.tooLarge();
    } else if (this.#errorBytes < maxErrorBytes) {
      this.#errorBytes += chunk.byteLength;
      this.#errorBody.push(chunk);
    } else this.end();
  }

  #take(chunk: Buffer): void {
    this.#form ??= answerForm(chunk, 'events');
    if (this.#form === 'document') {
      this.#out.arrived();
      this.#document.push(chunk);
    } else if (this.#form === 'events') this.#events.feed(this.#text.write(chunk));
  }

  end(): void {
    if (this.#answer.isOver) this.#out.closed();
    else if (this.#errorBody !== null)
      this.#answer.fail(httpFailure(this.#scope, this.#scope.status ?? 500, Buffer.concat(this.#errorBody).toString()));
    else if (this.#form === 'document') {
      if (this.#answer.readDocument(Buffer.concat(this.#document).toString())) this.#out.end();
      this.#out.closed();
    } else {
      // Servers that send no `[DONE]` end the body after the last chunk, some without its blank line.
      this.#events.feed('\n\n');
      this.#complete(false);
      this.#out.closed();
    }
  }

  fail(failure: WireFailure): void {
    if (this.#answer.isOver) this.#out.closed();
    else if (this.#errorBody === null) this.#answer.fail(wireFailure(this.#scope.provider, failure));
    else this.end();
  }

  #event(data: string): void {
    if (this.#answer.isOver) return;
    this.#out.arrived();
    if (data === '[DONE]') this.#complete(true);
    else this.#answer.read(data, 'An event', foreignEventLimits);
  }

  #complete(saidDone: boolean): void {
    if (this.#answer.complete(saidDone)) this.#out.end();
  }
}
