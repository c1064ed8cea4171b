/** Sends requests from a thread of its own, so that sending costs nothing on the thread that is measured. */
import { request } from 'node:http';
import process from 'node:process';
import { parentPort } from 'node:worker_threads';

export interface HostileRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Shared memory, so that handing it over copies nothing. */
  readonly body: Uint8Array;
}

export interface HostileResponse {
  /** 0: the connection was closed without an answer. */
  readonly status: number;
  /** The beginning of the answer. */
  readonly start: string;
}

const maxAnswerMs = 10_000;
/** An event stream that stays open is left after this. */
const maxStreamMs = 200;
const startLength = 300;

if (parentPort === null) process.exit(1);
const port = parentPort;

port.on('message', ({ url, method, headers, body }: HostileRequest) => {
  let isSettled = false;
  let status = 0;
  let start = '';
  const settle = (): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(limit);
    sent.destroy();
    port.postMessage({ status, start } satisfies HostileResponse);
  };
  const sent = request(url, {
    method,
    agent: false,
    headers: { ...headers, 'content-length': String(body.byteLength) },
  });
  let limit = setTimeout(settle, maxAnswerMs);
  sent.on('response', (response) => {
    status = response.statusCode ?? 0;
    if (response.headers['content-type']?.startsWith('text/event-stream') === true) {
      clearTimeout(limit);
      limit = setTimeout(settle, maxStreamMs);
    }
    response.on('data', (chunk: Buffer) => {
      if (start.length < startLength) start += chunk.toString('latin1');
    });
    response.on('error', settle).on('close', settle);
  });
  sent.on('error', settle);
  sent.end(body);
});
