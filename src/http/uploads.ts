import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy } from '@fastify/busboy';
import { AcpError } from '../contract/errors.ts';
import type { UploadedFile, UploadShape } from '../contract/operation.ts';
import { RequestAbortedError } from './body.ts';

// A browser's form has a handful of parts beside the file; whatever is more is there to cost something.
const limits = {
  parts: 32,
  fields: 32,
  files: 32,
  headerPairs: 32,
  headerSize: 8192,
  fieldNameSize: 256,
  // Fields are ignored, so none of their text is kept.
  fieldSize: 256,
};
/** Bytes that a request may have beside its file, framing and what waits in the parser included. */
const maxBesideBytes = 1_310_720;
/** What the parser holds of a file before it stops the sender. */
const bufferBytes = 65_536;

/**
 * Whether a chunk begins more parts than a form may have. The parser tells of too many only once it has gone through all of the
 * chunk, and a part of ten bytes costs it as much as kilobytes of a file.
 */
const partsCheck = (contentType: string): ((chunk: Buffer) => boolean) => {
  const [, quoted, plain] = /;[ \t]*boundary=(?:"([^"]+)"|([^";\s]+))/i.exec(contentType) ?? [];
  const delimiter = Buffer.from(`\r\n--${quoted ?? plain ?? ''}`, 'latin1');
  return (chunk) => {
    let parts = 0;
    for (let at = chunk.indexOf(delimiter); at !== -1; at = chunk.indexOf(delimiter, at + delimiter.length)) {
      parts += 1;
      if (parts > limits.parts + 1) return true;
    }
    return false;
  };
};

/** An upload in progress. `stop` ends the reading of what nobody wants any more; it is safe to call at any time. */
export interface Upload {
  readonly file: Promise<UploadedFile>;
  stop(): void;
}

const malformed = (cause: unknown): AcpError =>
  new AcpError('multipart-malformed', 'The body is not valid multipart/form-data, or not all of it arrived.', {
    cause,
  });

const required = (part: string, parts: 'none' | 'several'): AcpError =>
  new AcpError(
    'file-required',
    parts === 'none'
      ? `The form needs a file part named "${part}".`
      : `The form has several file parts named "${part}".`,
  );

/** The file stream of the parser: `bytesRead` counts what it has been given. */
interface FileStream extends Readable {
  readonly bytesRead: number;
}

const openParser = (request: IncomingMessage) => {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data[ \t]*(?:;|$)/i.test(contentType))
    throw new AcpError('unsupported-media-type', 'The body must be multipart/form-data.');
  try {
    // Names with their paths: what of them is kept is the feature's business.
    const headers = { ...request.headers, 'content-type': contentType };
    return new Busboy({ headers, limits, fileHwm: bufferBytes, highWaterMark: bufferBytes, preservePath: true });
  } catch (error) {
    throw malformed(error);
  }
};

/**
 * Reads a form while it arrives: nothing of the file is held but what is on its way to the reader, and a reader that is
 * slow slows the sender.
 */
export const openUpload = (request: IncomingMessage, response: ServerResponse, { part }: UploadShape): Upload => {
  const parser = openParser(request);
  const hasTooManyParts = partsCheck(request.headers['content-type'] ?? '');
  const opened = Promise.withResolvers<UploadedFile>();
  const whole = Promise.withResolvers<void>();
  // Whoever waits for either is told; nobody may be waiting.
  opened.promise.catch(() => undefined);
  whole.promise.catch(() => undefined);
  let file: FileStream | null = null;
  let total = 0;
  let ended = false;

  const stop = (): void => {
    if (ended) return;
    ended = true;
    request.off('data', take).off('end', finish).off('close', gone).off('error', gone);
    request.pause();
  };
  const fail = (error: Error): void => {
    if (ended) return;
    stop();
    opened.reject(error);
    whole.reject(error);
    file?.destroy(error);
  };
  // A request that has arrived closes, too, perhaps while its last bytes are still being read.
  const gone = (): void => {
    if (!request.complete) fail(new RequestAbortedError());
  };
  const tooMuch = (): void => fail(new AcpError('payload-too-large', 'The form has too much beside its file.'));
  const take = (chunk: Buffer): void => {
    total += chunk.length;
    if (total - (file?.bytesRead ?? 0) > maxBesideBytes || hasTooManyParts(chunk)) tooMuch();
    else if (!parser.write(chunk)) request.pause();
  };
  const finish = (): void => void parser.end();

  const read = async function* (stream: FileStream): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of stream) yield chunk as Buffer;
      // The file is over; whether it was the only one is known at the end of the form.
      await whole.promise;
    } catch (error) {
      // A stream that broke says less than what broke it.
      if (!(error instanceof AcpError)) await whole.promise;
      throw error;
    } finally {
      stop();
    }
  };

  parser.on('file', (name, stream, fileName) => {
    // Told once for the part and perhaps again for the form: the end of the body came too early.
    stream.on('error', (error) => fail(malformed(error)));
    if (name !== part) stream.resume();
    else if (file !== null) {
      stream.resume();
      fail(required(part, 'several'));
    } else {
      file = stream as FileStream;
      opened.resolve({ name: fileName === '' ? null : (fileName ?? null), bytes: read(file) });
    }
  });
  for (const event of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) parser.on(event, tooMuch);
  parser.on('error', (error) => fail(malformed(error)));
  parser.on('finish', () => {
    if (file === null) fail(required(part, 'none'));
    else whole.resolve();
  });
  request.on('close', gone).on('error', gone).on('data', take).on('end', finish);
  parser.on('drain', () => ended || request.resume());
  if (/^100-continue$/i.test(request.headers.expect ?? '')) response.writeContinue();
  return { file: opened.promise, stop };
};
