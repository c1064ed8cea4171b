import type { Frame } from '../../contract/operation.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import { callItemIds, messageItemId, outputText, serverLabel } from './items.ts';
import type { Item, OpenAiResponse, ResponseUsage } from './responses.schema.ts';
import { type FrameTranslator, failureOf, membersOf, type RunEventMembers } from './run-frames.ts';
import { callEvents, type ToolForms } from './tool-forms.ts';

/** What a response says from its beginning to its end. */
export type ResponseHead = Omit<
  OpenAiResponse,
  'status' | 'output' | 'usage' | 'error' | 'incomplete_details' | 'completed_at' | 'from_cache'
>;

const responseUsage = (usage: ModelUsage | null): ResponseUsage | null =>
  usage === null
    ? null
    : {
        input_tokens: usage.inputTokens,
        output_tokens: usage.outputTokens,
        total_tokens: usage.totalTokens,
        input_tokens_details: { cached_tokens: usage.cachedInputTokens },
        output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      };

type Of<T extends Item['type']> = Extract<Item, { type: T }>;

interface OpenMessage {
  readonly index: number;
  readonly id: string;
  text: string;
  /** Parts that are stored without their text: sent once the message is known. */
  held: number;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? {}));

/**
 * A run's events as those of a response. What is sent, and under which numbers, depends on the log alone, so that a stream
 * can be read again from any number; the response at any moment is what its events have said.
 */
export class ResponseEvents implements FrameTranslator {
  readonly #runId: string;
  readonly #response: OpenAiResponse;
  readonly #output: Item[] = [];
  readonly #forms: ToolForms | null;
  readonly #idOf = callItemIds();
  readonly #calls = new Map<string, number>();
  #frames: Frame[] = [];
  #next = 0;
  #message: OpenMessage | null = null;

  constructor(runId: string, head: ResponseHead, forms: ToolForms | null) {
    this.#runId = runId;
    this.#forms = forms;
    this.#response = {
      ...head,
      status: 'in_progress',
      error: null,
      incomplete_details: null,
      completed_at: null,
      usage: null,
      output: this.#output as OpenAiResponse['output'],
    };
  }

  /** As it is by now. */
  get response(): OpenAiResponse {
    return { ...this.#response, output: [...this.#output] as OpenAiResponse['output'] };
  }

  /** Number of the next event. */
  get nextSequence(): number {
    return this.#next;
  }

  frames(frame: Frame): readonly Frame[] {
    this.#frames = [];
    this.#take(frame);
    return this.#frames;
  }

  #take(frame: Frame): void {
    switch (frame.event) {
      case 'run.started':
        this.#emit('response.created', { response: this.response });
        this.#emit('response.in_progress', { response: this.response });
        return;
      case 'message.delta':
        this.#delta(membersOf(frame));
        return;
      case 'message.completed':
        this.#told(membersOf(frame));
        return;
      case 'tool.invoking':
        this.#invoking(membersOf(frame));
        return;
      case 'tool.invoked':
      case 'tool.failed':
        this.#settled(frame.event, membersOf(frame));
        return;
      case 'client-tool.requested':
        this.#requested(membersOf(frame));
        return;
      case 'structured-response.repair-attempted':
        this.#takeBack();
        return;
      default:
        this.#end(frame);
    }
  }

  #told(event: RunEventMembers): void {
    if (event.fromCache === true) this.#response.from_cache = true;
    else delete this.#response.from_cache;
    this.#completed(event);
  }

  #emit(type: string, members: object): void {
    this.#frames.push({ event: type, data: JSON.stringify({ type, ...members, sequence_number: this.#next }) });
    this.#next += 1;
  }

  #add(item: Item): number {
    const index = this.#output.push(item) - 1;
    this.#emit('response.output_item.added', { output_index: index, item });
    return index;
  }

  #done(index: number, item: Item): void {
    this.#output[index] = item;
    this.#emit('response.output_item.done', { output_index: index, item });
  }

  #open(id: string): OpenMessage {
    const item = messageItemId(this.#runId, id);
    const index = this.#add({ type: 'message', id: item, role: 'assistant', status: 'in_progress', content: [] });
    const message = { index, id: item, text: '', held: 0 };
    this.#message = message;
    this.#emit('response.content_part.added', { ...this.#place(message), part: outputText('') });
    return message;
  }

  #place({ id, index }: OpenMessage) {
    return { item_id: id, output_index: index, content_index: 0 };
  }

  #say(message: OpenMessage, delta: string): void {
    message.text += delta;
    this.#emit('response.output_text.delta', { ...this.#place(message), delta, logprobs: [] });
  }

  #delta({ messageId, text }: RunEventMembers): void {
    const message = this.#message ?? this.#open(messageId);
    if (text === null) message.held += 1;
    else this.#say(message, text);
  }

  #completed({ messageId, text }: RunEventMembers): void {
    const whole = text ?? '';
    if (this.#message === null && whole === '') return;
    const message = this.#message ?? this.#open(messageId);
    const isNew = message.text === '' && message.held === 0;
    for (; message.held > 1; message.held -= 1) this.#say(message, '');
    if (isNew || message.held === 1) this.#say(message, whole.slice(message.text.length));
    this.#close(message, whole, 'completed');
  }

  #close(message: OpenMessage, text: string, status: 'completed' | 'incomplete'): void {
    this.#message = null;
    const part = outputText(text);
    this.#emit('response.output_text.done', { ...this.#place(message), text, logprobs: [] });
    this.#emit('response.content_part.done', { ...this.#place(message), part });
    this.#done(message.index, { type: 'message', id: message.id, role: 'assistant', status, content: [part] });
  }

  /** An answer that was not accepted is none. It is asked for again only where nothing has been sent, or is kept, of it. */
  #takeBack(): void {
    if (this.#output.at(-1)?.type === 'message') this.#output.pop();
  }

  #invoking({ toolCallId, toolName, source, arguments: args }: RunEventMembers): void {
    const text = textOf(args);
    const item: Of<'mcp_call'> = {
      type: 'mcp_call',
      id: this.#idOf('mcp', this.#runId, toolCallId),
      server_label: serverLabel(toolName, source),
      name: toolName,
      arguments: text,
      output: null,
      error: null,
      status: 'in_progress',
    };
    const outputIndex = this.#add({ ...item, arguments: '' });
    this.#calls.set(toolCallId, outputIndex);
    this.#output[outputIndex] = item;
    const place = { item_id: item.id, output_index: outputIndex };
    this.#emit('response.mcp_call.in_progress', place);
    this.#emit('response.mcp_call_arguments.done', { ...place, arguments: text });
  }

  #settled(type: 'tool.invoked' | 'tool.failed', event: RunEventMembers): void {
    const failed = type === 'tool.failed';
    // What was never made has an end alone: the answer of the caller's program, or a refusal. Logs of earlier versions have no arguments there.
    if (!this.#calls.has(event.toolCallId) && failed) this.#invoking(event);
    const index = this.#calls.get(event.toolCallId);
    const item = index === undefined ? undefined : this.#output[index];
    if (index === undefined || item?.type !== 'mcp_call') return;
    this.#calls.delete(event.toolCallId);
    this.#emit(failed ? 'response.mcp_call.failed' : 'response.mcp_call.completed', {
      item_id: item.id,
      output_index: index,
    });
    const told = event.error as unknown;
    this.#done(index, {
      ...item,
      output: failed ? null : (event.result ?? null),
      error: failed ? (typeof told === 'string' ? told : 'The call failed.') : null,
      status: failed ? 'failed' : 'completed',
    });
  }

  #requested({ callId, toolName, arguments: args }: RunEventMembers): void {
    const id = this.#idOf('fc', this.#runId, callId);
    const { item, begun, event, text, done } = callEvents(this.#forms, { id, callId, toolName, arguments: args });
    const outputIndex = this.#add(begun);
    const place = { item_id: id, output_index: outputIndex };
    if (event !== null) {
      this.#emit(`${event}.delta`, { ...place, delta: text });
      this.#emit(`${event}.done`, { ...place, ...done });
    }
    this.#done(outputIndex, item);
  }

  #end(frame: Frame): void {
    const status = this.#statusAt(frame);
    if (status === null) return;
    this.#cutOff();
    this.#tellOutcome(frame, status);
    const type = status === 'completed' || status === 'incomplete' ? status : 'failed';
    this.#emit(`response.${type}`, { response: this.response });
  }

  /** Ends what the run has left open: its stored parts may have no text. */
  #cutOff(): void {
    if (this.#message !== null) {
      for (; this.#message.held > 0; this.#message.held -= 1) this.#say(this.#message, '');
      this.#close(this.#message, this.#message.text, 'incomplete');
    }
    for (const index of this.#calls.values()) {
      const item = this.#output[index];
      if (item?.type === 'mcp_call') this.#done(index, { ...item, status: 'incomplete' });
    }
  }

  #tellOutcome(frame: Frame, status: OpenAiResponse['status']): void {
    const event = membersOf(frame);
    Object.assign(this.#response, {
      status,
      usage: responseUsage(event.usage),
      completed_at: status === 'completed' ? Math.floor(Date.parse(event.timestamp) / 1000) : null,
    });
    if (status === 'incomplete')
      this.#response.incomplete_details = {
        reason:
          frame.event === 'run.completed' && event.finishReason === 'Length' ? 'max_output_tokens' : 'content_filter',
      };
    if (status !== 'failed') return;
    const { code, message } = failureOf(event);
    this.#response.error = { code: code ?? 'internal', message };
  }

  /** Null: the run goes on. */
  #statusAt(frame: Frame): OpenAiResponse['status'] | null {
    switch (frame.event) {
      case 'run.completed': {
        const { finishReason } = membersOf(frame);
        return finishReason === 'Length' || finishReason === 'ContentFilter' ? 'incomplete' : 'completed';
      }
      case 'run.awaiting-input':
      case 'run.awaiting-approval':
        return 'completed';
      case 'run.failed':
        return membersOf(frame).error.class === 'ContentFiltered' ? 'incomplete' : 'failed';
      case 'run.canceled':
        return 'cancelled';
      default:
        return null;
    }
  }
}
