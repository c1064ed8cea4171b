import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { AcpError } from '../contract/errors.ts';
import type { Frame } from '../contract/operation.ts';

const toFrame = ({ id, event, data }: EventSourceMessage): Frame => {
  const name = event ?? 'message';
  if (id === undefined || id === '') return { event: name, data };
  if (!/^\d{1,15}$/.test(id)) throw new AcpError('cannot-connect', `The event stream has a frame with the id "${id}".`);
  return { id: Number(id), event: name, data };
};

// One frame holds at most a run's whole output; more without an end is not a service of ours.
const maxFrameCharacters = 64 * 1024 * 1024;

/**
 * Frames of a server-sent event stream, in order. Comment lines and unknown fields are skipped; an incomplete frame at
 * the end is dropped, because the log still has it. Throws `cannot-connect` for bytes that are no event stream of ours.
 */
export const readFrames = async function* (bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Frame, void, undefined> {
  const pending: Frame[] = [];
  const parser = createParser({
    maxBufferSize: maxFrameCharacters,
    onEvent: (message) => pending.push(toFrame(message)),
    onError: (cause) => {
      if (cause.type === 'max-buffer-size-exceeded')
        throw new AcpError('cannot-connect', 'The event stream has a frame without an end.', { cause });
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of bytes) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* pending.splice(0);
  }
};
