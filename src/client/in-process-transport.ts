import { randomUUID } from 'node:crypto';
import { AcpError, toProblem } from '../contract/errors.ts';
import { openAiStatus } from '../contract/openai-error.ts';
import { type FileSource, type Frame, type FrameSource, type UploadedFile, wholeBody } from '../contract/operation.ts';
import { ProblemError } from './problem.ts';
import { operationPath, type Transport, type TransportCall, type TransportReply, textEntries } from './transport.ts';

type LocalEntry = Pick<TransportCall, 'id' | 'operation'>;

type LocalReply =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly stream: FrameSource; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status: number; readonly file: FileSource; readonly headers?: Readonly<Record<string, string>> }
  | {
      readonly status: number;
      readonly parts: AsyncIterable<string>;
      readonly headers?: Readonly<Record<string, string>>;
    };

interface LocalInput extends Pick<TransportCall, 'params' | 'query' | 'headers'> {
  body(): unknown;
}

interface LocalCall<Caller> {
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly method: string;
  readonly path: string;
  authenticate(): Caller;
  readBody(maxBytes?: number): Uint8Array | null;
  received(rawBody: Uint8Array | null): LocalInput;
  openFile?(): Promise<UploadedFile>;
}

/** The part of the service's dispatch that this transport needs, so that no server code is imported. */
export interface LocalDispatch<Entry extends LocalEntry, Caller> {
  readonly entries: readonly Entry[];
  call(entry: Entry, call: LocalCall<Caller>): Promise<LocalReply>;
}

const defaultBodyBytes = 1_048_576;
// A reader this far behind live frames is cut off, as over HTTP; it goes on from the log.
const maxWaitingFrames = 20_000;
// Stored frames wait for the reader from here on.
const enoughWaitingFrames = 1_000;

/** Turns pushed batches into an iteration. Leaving it, or aborting the signal, ends the subscription. */
const pull = async function* (source: FrameSource, signal: AbortSignal): AsyncGenerator<Frame, void, undefined> {
  let waiting: Frame[] = [];
  const state = { ended: false, behind: false };
  let wake = (): void => undefined;
  let taken = Promise.withResolvers<void>();
  let stop: (() => void) | undefined;
  stop = source.subscribe(
    (frames) => {
      if (state.behind) return;
      for (const frame of frames) waiting.push(frame);
      if (waiting.length > maxWaitingFrames) {
        state.behind = true;
        // Undefined while a source pushes from within `subscribe`; the end of the iteration stops that one.
        stop?.();
      }
      wake();
    },
    () => {
      state.ended = true;
      wake();
    },
    () => (waiting.length > enoughWaitingFrames ? taken.promise : undefined),
  );
  const aborted = (): void => wake();
  signal.addEventListener('abort', aborted);
  try {
    for (;;) {
      signal.throwIfAborted();
      if (waiting.length > 0) {
        const batch = waiting;
        waiting = [];
        yield* batch;
        taken.resolve();
        taken = Promise.withResolvers();
      } else if (state.behind) throw new AcpError('cannot-connect', 'The reader of the event stream is too slow.');
      else if (state.ended) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    signal.removeEventListener('abort', aborted);
    taken.resolve();
    stop();
  }
};

const lowerCase = (headers: Readonly<Record<string, string>> | undefined): Record<string, string> =>
  Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));

const encodeBody = (
  call: TransportCall,
  limit = call.operation.maxBodyBytes ?? defaultBodyBytes,
): Uint8Array | null => {
  if (call.body === undefined) return null;
  const bytes = Buffer.from(call.operation.signed === true ? String(call.body) : JSON.stringify(call.body));
  if (bytes.length > limit) throw new AcpError('payload-too-large', `The body is larger than ${limit} bytes.`);
  return bytes;
};

/**
 * Calls a service in this process, through the same pipeline and with the same answers as over HTTP: values pass as
 * JSON and text, errors come back as problems.
 */
export const inProcessTransport = <Entry extends LocalEntry, Caller>(
  dispatch: LocalDispatch<Entry, Caller>,
  caller: Caller,
  close: () => Promise<void> = async () => undefined,
): Transport => {
  const entries = new Map(dispatch.entries.map((entry) => [entry.id, entry]));

  const perform = async (call: TransportCall, path: string, requestId: string): Promise<TransportReply> => {
    const entry = entries.get(call.id);
    if (entry === undefined) throw new AcpError('feature-not-available', `This service has no operation ${call.id}.`);
    const signal = call.signal ?? new AbortController().signal;
    const { file } = call;
    const reply = await dispatch.call(entry, {
      requestId,
      signal,
      method: call.operation.method,
      path,
      authenticate: () => caller,
      readBody: (maxBytes) => encodeBody(call, maxBytes),
      received: (rawBody) => ({
        params: call.params,
        query: Object.fromEntries(textEntries(call.query)),
        headers: Object.fromEntries(textEntries(call.headers)),
        body: () => (rawBody === null ? undefined : JSON.parse(new TextDecoder().decode(rawBody))),
      }),
      ...(file === undefined ? {} : { openFile: async () => file }),
    });
    const { status } = reply;
    const headers = lowerCase(reply.headers);
    if ('stream' in reply) return { status, headers, frames: pull(reply.stream, signal) };
    if ('file' in reply) {
      const { sizeBytes, bytes } = reply.file;
      const length = sizeBytes === null ? {} : { 'content-length': String(sizeBytes) };
      return { status, headers: { ...headers, ...length }, bytes };
    }
    if ('parts' in reply) return { status, headers, body: await wholeBody(reply.parts) };
    const body = reply.body === undefined ? undefined : JSON.parse(JSON.stringify(reply.body));
    return { status, headers, body };
  };

  return {
    target: null,
    async call(call) {
      call.signal?.throwIfAborted();
      const requestId = randomUUID();
      const path = operationPath(call.operation, call.params);
      try {
        return await perform(call, path, requestId);
      } catch (cause) {
        if (call.signal?.aborted === true) throw call.signal.reason;
        const error =
          cause instanceof AcpError ? cause : new AcpError('internal', 'The service failed unexpectedly.', { cause });
        const problem = toProblem(error, path, requestId);
        const status = call.operation.envelope === 'OpenAi' ? openAiStatus(error.code) : error.status;
        throw new ProblemError(error.code, { ...problem, status }, error.details, error);
      }
    },
    close,
  };
};
