/** What a simulated provider answers, apart from any API's format. */
export interface SimulatedAnswer {
  /** Chunks of text, in order. */
  readonly text?: readonly string[];
  /** Chunks of thought, before the text. */
  readonly reasoning?: readonly string[];
  readonly toolCalls?: readonly SimulatedToolCall[];
  /** A web search that the provider makes itself, between its thoughts and its text. */
  readonly search?: SimulatedSearch;
  /** Null: the provider reports no usage. */
  readonly usage?: SimulatedUsage | null;
  /** `pause`: the provider interrupts its answer, and continues when it gets it back. */
  readonly finish?: 'stop' | 'length' | 'filter' | 'pause';
  /** The finish reason in the API's own words, in place of that of `finish`; null: there is none. */
  readonly reason?: string | null;
  readonly oddities?: Oddities;
  /** What is made of texts, in their order; default: one vector of each. */
  readonly vectors?: readonly SimulatedVector[];
}

/** What servers do that speak an API almost as its vendor does. */
export interface Oddities {
  /** How chat completions stream tool calls; default: as OpenAI does. */
  readonly callForm?: (calls: readonly SimulatedToolCall[]) => object[][];
  /** Arguments of calls as an object where the API has a text, and the other way round. */
  readonly argumentsInOtherType?: true;
  /** Chat completions have their usage in the choice (Moonshot) or in `x_groq` (Groq). */
  readonly usageAt?: 'choice' | 'x_groq';
  /** Counts are texts. */
  readonly countsAsTexts?: true;
  /** Cached tokens of chat completions are `prompt_cache_hit_tokens` alone (DeepSeek). */
  readonly cacheHits?: true;
  /** The last event of a stream has a count of 0 for the input. */
  readonly zeroInputAtEnd?: true;
  /** The member that chat completions have their reasoning in; default: `reasoning_content`. */
  readonly reasoningIn?: 'reasoning' | 'reasoning_details';
  /** A stream has `[DONE]` at its end in an API that has no such line. */
  readonly saysDone?: true;
  /** A response is `incomplete` and has no reason, or another status. */
  readonly status?: string;
}

export interface SimulatedVector {
  readonly index?: number;
  readonly embedding: readonly number[];
}

export interface SimulatedToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text; streamed in pieces where the API does that. */
  readonly arguments: string;
}

export interface SimulatedSearch {
  readonly query: string;
  /** Null: the search fails. */
  readonly pages: readonly { readonly url: string; readonly title: string }[] | null;
  /** Of a paused answer and the answer that continues it: the first has the call alone, the second its result. */
  readonly half?: 'call' | 'result';
}

/** Counts in the sense of the service: input includes cached, output includes reasoning. */
export interface SimulatedUsage {
  readonly input: number;
  readonly output: number;
  readonly cached?: number;
  readonly reasoning?: number;
}

/** Errors that the APIs report with a code or type of their own. */
export type VendorFault = 'server' | 'overloaded' | 'rate-limit' | 'bad-key' | 'bad-request' | 'context' | 'filter';

/** `after`: number of frames that are sent before it happens; those of a streamed answer's preamble count. */
export type SimulatedFault =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly vendor?: VendorFault;
      readonly headers?: Readonly<Record<string, string>>;
      /** Instead of the API's error document. */
      readonly body?: string;
    }
  | { readonly kind: 'stall'; readonly after: number }
  | { readonly kind: 'cut'; readonly after: number }
  | { readonly kind: 'end'; readonly after: number }
  | { readonly kind: 'malformed'; readonly after: number; readonly frame?: string }
  | { readonly kind: 'event'; readonly after: number; readonly vendor: VendorFault };

export interface Scenario {
  readonly answer?: SimulatedAnswer;
  /** The form that the answer has, whatever was asked for; `list`: the chunks of a stream in one JSON list. */
  readonly form?: 'events' | 'document' | 'list';
  readonly fault?: SimulatedFault;
}

export type WireName = 'chat' | 'embeddings' | 'azure' | 'responses' | 'anthropic' | 'gemini';

/** A request as the simulator received it. */
export interface SimulatedRequest {
  readonly wire: WireName;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // The shape is the vendor's; tests look at single members.
  readonly body: Readonly<Record<string, unknown>>;
  readonly streaming: boolean;
  readonly model: string;
  /** Resolves when the connection was closed before the answer was complete. */
  readonly aborted: Promise<void>;
}

export interface Wire {
  /** SSE frames of a streamed answer, each with its blank line. */
  frames(answer: SimulatedAnswer, request: SimulatedRequest): string[];
  /** The JSON of an answer that is not streamed. */
  document(answer: SimulatedAnswer, request: SimulatedRequest): unknown;
  /** The JSON of an HTTP error. */
  error(fault: VendorFault, status: number): unknown;
  /** An error inside a stream. */
  errorFrame(fault: VendorFault): string;
  /** Why the real API would refuse the request; null when it would not. */
  objection(request: SimulatedRequest): string | null;
}

/** Text cut into `count` pieces of about the same length. */
export const pieces = (text: string, count: number): string[] => {
  const size = Math.max(1, Math.ceil(text.length / count));
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  );
};

/** A usage in which each count is a text. */
export const countsAsTexts = (usage: unknown): unknown =>
  JSON.parse(JSON.stringify(usage), (_, value) => (typeof value === 'number' ? String(value) : value));

export const doneFrame = 'data: [DONE]\n\n';

export const dataFrame = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

export const eventFrame = (event: string, data: object): string =>
  `event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`;
