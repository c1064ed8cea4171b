import type { IncomingMessage, ServerResponse } from 'node:http';
import { AcpError } from '../contract/errors.ts';

export const defaultMaxBodyBytes = 1_048_576;
/** How long the rest of a refused body is thrown away, so that the caller can read the answer, before the connection is cut. */
const discardMs = 5000;

const empty: Uint8Array = new Uint8Array(0);

const tooLarge = (limit: number) => new AcpError('payload-too-large', `The body is larger than ${limit} bytes.`);

/** The caller went away before its request was complete; nobody is left to answer. */
export class RequestAbortedError extends Error {
  constructor() {
    super('The caller went away.');
    this.name = 'RequestAbortedError';
  }
}

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/** The body as received. Throws `payload-too-large` as soon as the limit is known to be passed. */
export const readBody = (
  request: IncomingMessage,
  response: ServerResponse,
  limit: number,
): Promise<Uint8Array> | Uint8Array => {
  if (!hasBody(request)) return empty;
  const declared = request.headers['content-length'];
  if (declared !== undefined && Number(declared) > limit) throw tooLarge(limit);
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (error: Error | null): void => {
      request.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
      if (error === null) resolve(chunks.length === 1 ? (chunks[0] ?? empty) : Buffer.concat(chunks, size));
      else reject(error);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limit) settle(tooLarge(limit));
      else chunks.push(chunk);
    };
    const onEnd = (): void => settle(null);
    const onGone = (): void => settle(new RequestAbortedError());
    request.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
  });
};

/**
 * Throws away what a caller still sends after its answer. Closing at once would reset the connection, and most clients
 * then never see the answer; waiting for ever would let them send without end.
 */
export const discardRest = (request: IncomingMessage): void => {
  if (request.complete || request.destroyed) return;
  const cut = setTimeout(() => request.destroy(), discardMs);
  request.once('close', () => clearTimeout(cut)).once('error', () => clearTimeout(cut));
  request.resume();
};
