import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { inTime } from '../support/eventually.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  json<T = Record<string, unknown>>(): T;
}

export interface Call {
  readonly method?: string;
  /** Sent as JSON; a text or bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface SseFrame {
  readonly id: number | null;
  readonly event: string;
  readonly data: string;
}

/** An event stream as it arrives, on a connection of its own. */
export interface EventStream {
  readonly headers: IncomingHttpHeaders;
  readonly runId: string;
  readonly frames: readonly SseFrame[];
  /** `end`: the answer was complete. `cut`: its connection broke. */
  readonly ended: Promise<'end' | 'cut'>;
  /** Resolves when so many frames are there; rejects when the stream is over before. */
  atLeast(count: number): Promise<void>;
  /** Resolves with the first frame of this type; rejects when the stream is over before. */
  first(event: string): Promise<SseFrame>;
  /** Takes nothing more from the connection. */
  pause(): void;
  resume(): void;
  /** Closes the connection, as a client does that goes away. */
  leave(): void;
}

const send = (url: string, { method, body, headers }: Call): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined;
    const content = raw ? body : JSON.stringify(body);
    const outgoing = request(
      url,
      {
        // No connection is shared: each call lives and dies alone.
        agent: false,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          ...(content === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
          ...headers,
        },
      },
      resolve,
    );
    outgoing.once('error', reject);
    outgoing.end(content);
  });

const readText = async (answer: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const part of answer.setEncoding('utf8')) text += part as string;
  return text;
};

/** One request and its whole answer. Rejects when the connection breaks before it is complete. */
export const call = async (url: string, options: Call = {}): Promise<Answer> => {
  const answer = await send(url, options);
  const text = await readText(answer);
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    text,
    json: <T>() => JSON.parse(text) as T,
  };
};

const parseFrame = (text: string): SseFrame | null => {
  const fields = new Map(
    text
      .split('\n')
      .filter((line) => !line.startsWith(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const),
  );
  const [event, data, id] = [fields.get('event'), fields.get('data'), fields.get('id')];
  return event === undefined || data === undefined ? null : { id: id === undefined ? null : Number(id), event, data };
};

interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Opens an event stream and resolves with its head. An answer that is no event stream is an error with its text. */
export const openStream = async (url: string, options: Call = {}): Promise<EventStream> => {
  const answer = await send(url, options);
  if (answer.statusCode !== 200 || answer.headers['content-type'] !== 'text/event-stream')
    throw new Error(`${answer.statusCode} instead of an event stream: ${await readText(answer)}`);
  const frames: SseFrame[] = [];
  const waiters = new Set<Waiter>();
  let rest = '';
  let over = false;
  const settle = (): void => {
    for (const waiter of waiters) {
      if (waiter.holds()) waiter.resolve();
      else if (over) waiter.reject(new Error(`The stream ended after ${frames.length} frames.`));
      else continue;
      waiters.delete(waiter);
    }
  };
  const when = (what: string, holds: () => boolean): Promise<void> =>
    inTime(
      `${what} of a stream that has ${frames.length} frames`,
      new Promise((resolve, reject) => {
        waiters.add({ holds, resolve, reject });
        settle();
      }),
    );
  answer.setEncoding('utf8').on('data', (part: string) => {
    const texts = (rest + part).split('\n\n');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const frame = parseFrame(text);
      if (frame !== null) frames.push(frame);
    }
    settle();
  });
  const ended = new Promise<'end' | 'cut'>((resolve) => {
    // A connection that breaks says so with an error first; `complete` tells how the answer ended.
    answer.on('error', () => undefined);
    answer.once('close', () => {
      over = true;
      settle();
      resolve(answer.complete ? 'end' : 'cut');
    });
  });
  return {
    headers: answer.headers,
    runId: String(answer.headers['x-run-id']),
    frames,
    ended,
    atLeast: (count) => when(`frame ${count}`, () => frames.length >= count),
    async first(event) {
      await when(`the frame ${event}`, () => frames.some((frame) => frame.event === event));
      return frames.find((frame) => frame.event === event) as SseFrame;
    },
    pause: () => void answer.pause(),
    resume: () => void answer.resume(),
    leave: () => void answer.destroy(),
  };
};

/** The whole log of a run, as the events operation gives it. */
export const readLog = async (url: string, runId: string, after?: number): Promise<readonly SseFrame[]> => {
  const stream = await openStream(`${url}/api/runs/${runId}/events`, {
    headers: after === undefined ? {} : { 'last-event-id': String(after) },
  });
  await inTime(`the end of the log of run ${runId}`, stream.ended).finally(stream.leave);
  return stream.frames;
};

export const openSocket = (url: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname, () => resolve(socket)).once('error', reject);
  });

/** All that comes until the connection closes. */
export const received = (socket: Socket): Promise<string> => {
  let text = '';
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
  });
  return new Promise((resolve) => {
    // A reset after the answer is how a refused sender may be told; what came before it counts.
    socket.on('error', () => undefined).once('close', () => resolve(text));
  });
};

/** Sends bytes as they are and gives back all that comes until the other side closes. */
export const exchange = async (url: string, ...parts: readonly (string | Uint8Array)[]): Promise<string> => {
  const socket = await openSocket(url);
  for (const part of parts) socket.write(part);
  return received(socket);
};
