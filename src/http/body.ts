import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'secure-json-parse';
import { AcpError } from '../contract/errors.ts';
import { isJson } from '../core/documents/json-depth.ts';

export const defaultMaxBodyBytes = 1_048_576;
/** Deeper than any definition or message, shallow enough that no recursive walk over a body is a risk. */
const maxDepth = 64;
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

const quote = 0x22;
const backslash = 0x5c;

/** True when brackets outside strings nest deeper than allowed. Bytes suffice: UTF-8 never hides an ASCII byte. */
const nestsTooDeep = (bytes: Uint8Array): boolean => {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inString) {
      if (byte === backslash) at += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
};

/** Parses a JSON body strictly: UTF-8 only, bounded depth, no member that could reach a prototype. */
export const parseJsonBody = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) throw new AcpError('malformed-json', 'The body is not valid UTF-8.');
  if (nestsTooDeep(bytes)) throw new AcpError('validation-failed', `The body nests deeper than ${maxDepth} levels.`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    return parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // Valid JSON that the strict parser refuses has a forbidden member name.
    if (isJson(text.replace(/^\uFEFF/, '')))
      throw new AcpError('validation-failed', 'The body has a member named __proto__ or constructor.prototype.');
    throw new AcpError('malformed-json', 'The body is not valid JSON.');
  }
};

const jsonType = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

export const requireJsonType = (contentType: string | undefined): void => {
  if (contentType === undefined || !jsonType.test(contentType))
    throw new AcpError('unsupported-media-type', 'The body must be application/json.');
};
