/** Sends requests from a thread of its own, so that sending takes nothing of the thread that is measured. */
import { request } from 'node:http';
import process from 'node:process';
import { parentPort } from 'node:worker_threads';

export interface Sending {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface Sent {
  readonly status: number;
  readonly start: string;
}

const longestAnswerMs = 5000;
const startLength = 300;

if (parentPort === null) process.exit(1);
const port = parentPort;

port.on('message', ({ url, method, headers, body }: Sending) => {
  let isSettled = false;
  let status = 0;
  let start = '';
  // A connection that is cut is an answer as well: what it cost is measured.
  const settle = (): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(limit);
    sent.destroy();
    port.postMessage({ status, start } satisfies Sent);
  };
  const sent = request(url, {
    method,
    agent: false,
    headers: { ...headers, 'content-length': String(body.byteLength) },
  });
  // A stream that would go on is left.
  const limit = setTimeout(settle, longestAnswerMs);
  sent.on('response', (response) => {
    status = response.statusCode ?? 0;
    response.on('data', (chunk: Buffer) => {
      if (start.length < startLength) start += chunk.toString('latin1');
    });
    response.on('error', settle).on('close', settle);
  });
  sent.on('error', settle);
  sent.end(body);
});
