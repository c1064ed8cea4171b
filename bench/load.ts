import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

/** One request that is sent over and over, and how its answer is recognised. */
export interface Call {
  readonly url: URL;
  readonly path: string;
  readonly body: string;
  /** Further header lines, each with its end. */
  readonly headers?: string;
  /** Of an answer that is right. Default: 200. */
  readonly status?: number;
  /** Text that comes with the first token, and text without which an answer is not complete. */
  readonly firstToken: string;
  readonly complete: string;
}

export interface LoadLimits {
  readonly concurrency: number;
  /** The load ends with whichever comes first. */
  readonly seconds: number;
  readonly runs?: number;
  /**
   * Connections begin one after another over this time. Default: 0, all at once; where each answer takes as long by itself,
   * those that began together would stay together.
   */
  readonly spreadMs?: number;
}

export interface LoadResult {
  readonly runs: number;
  readonly seconds: number;
  /** Milliseconds, one for each run. */
  readonly durations: Float64Array;
  readonly firstTokens: Float64Array;
}

const answerTimeoutMs = 30_000;
const chunkedEnd = '0\r\n\r\n';

interface Answer {
  readonly durationMs: number;
  readonly firstTokenMs: number;
  readonly text: string;
}

/** Reads one answer: its end is found by length or by the last chunk, and nothing else of HTTP is looked at. */
class AnswerReader {
  readonly #parts: string[] = [];
  readonly #startedAt = performance.now();
  readonly #firstToken: string;
  #firstTokenAt = 0;
  #head = '';
  /** Bytes of the body still to come; -1: it ends with the last chunk. */
  #remaining: number | null = null;

  constructor(firstToken: string) {
    this.#firstToken = firstToken;
  }

  /** True once the answer is complete. */
  push(data: Buffer): boolean {
    const text = data.toString('latin1');
    if (this.#firstTokenAt === 0 && text.includes(this.#firstToken)) this.#firstTokenAt = performance.now();
    this.#parts.push(text);
    if (this.#remaining === null) {
      this.#head += text;
      const end = this.#head.indexOf('\r\n\r\n');
      if (end < 0) return false;
      const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head.slice(0, end + 2))?.[1];
      this.#remaining = length === undefined ? -1 : Number(length) - (this.#head.length - end - 4);
    } else if (this.#remaining > 0) this.#remaining -= text.length;
    if (this.#remaining >= 0) return this.#remaining === 0;
    return text.length >= chunkedEnd.length ? text.endsWith(chunkedEnd) : this.#parts.join('').endsWith(chunkedEnd);
  }

  finish(): Answer {
    const now = performance.now();
    return {
      durationMs: now - this.#startedAt,
      firstTokenMs: (this.#firstTokenAt === 0 ? now : this.#firstTokenAt) - this.#startedAt,
      text: this.#parts.join(''),
    };
  }
}

const requestBytes = ({ url, path, body, headers = '' }: Call): Buffer =>
  Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/json\r\naccept: */*\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

const openSocket = (url: URL): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
    socket.once('connect', () => resolve(socket)).once('error', reject);
  });

const exchange = (socket: Socket, call: Call, request: Buffer): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const reader = new AnswerReader(call.firstToken);
    const release = (): void => {
      socket.off('data', onData).off('error', onLost).off('close', onLost).off('timeout', onTimeout);
    };
    const fail = (reason: string): void => {
      release();
      const { text } = reader.finish();
      reject(new Error(`POST ${call.url.origin}${call.path}: ${reason}\n${text.slice(0, 2000)}`));
    };
    const onLost = (): void => fail('the connection was lost in the middle of the answer');
    const onTimeout = (): void => fail('no answer came in time');
    const onData = (data: Buffer): void => {
      if (!reader.push(data)) return;
      const answer = reader.finish();
      if (answer.text.startsWith(`HTTP/1.1 ${call.status ?? 200}`) && answer.text.includes(call.complete)) {
        release();
        resolve(answer);
      } else fail('the answer is not what was expected');
    };
    socket.on('data', onData).on('error', onLost).on('close', onLost).on('timeout', onTimeout);
    socket.write(request);
  });

/** One request over and over, or several in turn on each connection; all of them of one server. */
export type Calls = Call | readonly Call[];

/** Keeps `concurrency` connections busy. Rejects with the first answer that is wrong: a number for failures has no meaning. */
export const applyLoad = async (calls: Calls, limits: LoadLimits): Promise<LoadResult> => {
  const requests = [calls].flat().map((call) => ({ call, bytes: requestBytes(call) }));
  const [first] = requests;
  if (first === undefined) throw new Error('There is nothing to send');
  const durations: number[] = [];
  const firstTokens: number[] = [];
  const maxRuns = limits.runs ?? Number.POSITIVE_INFINITY;
  const sockets = await Promise.all(Array.from({ length: limits.concurrency }, () => openSocket(first.call.url)));
  const startedAt = performance.now();
  const endAt = startedAt + limits.seconds * 1000;
  let started = 0;
  const { spreadMs = 0 } = limits;
  const keepBusy = async (socket: Socket, index: number): Promise<void> => {
    if (spreadMs > 0) await delay((index * spreadMs) / sockets.length);
    socket.setTimeout(answerTimeoutMs);
    let sent = 0;
    while (started < maxRuns && performance.now() < endAt) {
      started += 1;
      const { call, bytes } = requests[(index + sent) % requests.length] ?? first;
      sent += 1;
      const { durationMs, firstTokenMs } = await exchange(socket, call, bytes);
      durations.push(durationMs);
      firstTokens.push(firstTokenMs);
    }
  };
  try {
    await Promise.all(sockets.map(keepBusy));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return {
    runs: durations.length,
    seconds: (performance.now() - startedAt) / 1000,
    durations: Float64Array.from(durations).sort(),
    firstTokens: Float64Array.from(firstTokens).sort(),
  };
};
