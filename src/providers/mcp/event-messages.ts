import { createParser } from 'eventsource-parser';
import { OutboundError } from '../http/outbound-error.ts';
import { McpFailure } from './mcp-failure.ts';

export interface ServerEvent {
  /** Empty: a message. */
  readonly name: string;
  readonly data: string;
  readonly id: string | null;
}

export interface ReadEvents {
  /** What the server asks to wait before the stream is opened again. */
  retryMs: number | null;
}

/** How much of a stream is read: of all of it, or of one event where it serves many calls. */
export interface EventLimits {
  readonly maxBytes: number;
  readonly of: 'stream' | 'event';
}

/** Events of a stream as they come. Throws McpFailure for more than `maxBytes`, and where the stream breaks off. */
export const readEvents = async function* (
  bytes: AsyncIterable<Uint8Array>,
  { maxBytes, of }: EventLimits,
  told: ReadEvents = { retryMs: null },
): AsyncGenerator<ServerEvent, void, undefined> {
  const pending: ServerEvent[] = [];
  const parser = createParser({
    onEvent: ({ event, data, id }) => pending.push({ name: event ?? '', data, id: id ?? null }),
    onRetry: (ms) => {
      told.retryMs = ms;
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  try {
    for await (const chunk of bytes) {
      size += chunk.byteLength;
      if (size > maxBytes) throw new OutboundError('response-too-large');
      parser.feed(decoder.decode(chunk, { stream: true }));
      if (of === 'event' && pending.length > 0) size = 0;
      yield* pending.splice(0);
    }
  } catch (error) {
    if (error instanceof OutboundError) throw new McpFailure('no-answer', { cause: error });
    throw error;
  }
};
