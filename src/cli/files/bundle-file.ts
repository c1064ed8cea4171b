import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { AcpError } from '../../contract/errors.ts';
import { faultCode } from './file-fault.ts';

// A file can say that it is huge; the longest line of a bundle is the history of one session. V8 has no texts of twice this.
const maxLineLength = 268_435_456;

const invalid = (message: string, cause?: unknown): AcpError =>
  new AcpError('bundle-invalid', message, cause === undefined ? {} : { cause });

const readFailure = (path: string, cause: unknown): AcpError => {
  const code = faultCode(cause);
  // Of the file, not of what is in it.
  if (cause instanceof Error && 'syscall' in cause)
    return new AcpError('validation-failed', `${path} cannot be read (${code}).`, { cause });
  if (code === 'Z_BUF_ERROR') return invalid(`${path} was cut off: its compressed text has no end.`, cause);
  return invalid(`${path} is no run bundle, or is damaged: it cannot be unpacked.`, cause);
};

/** Unpacked text in pieces. */
const unpacked = async function* (path: string): AsyncGenerator<string> {
  const file = createReadStream(path);
  const gunzip = createGunzip();
  file.once('error', (error) => gunzip.destroy(error));
  const decoder = new TextDecoder();
  try {
    for await (const bytes of file.pipe(gunzip)) yield decoder.decode(bytes as Uint8Array, { stream: true });
    yield decoder.decode();
  } catch (cause) {
    throw readFailure(path, cause);
  } finally {
    file.destroy();
  }
};

/** The lines of a bundle file without their ends, read as they are asked for. Throws `bundle-invalid`. */
export const bundleFileLines = async function* (path: string): AsyncGenerator<string> {
  let rest: string[] = [];
  let length = 0;
  for await (const text of unpacked(path)) {
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      yield [...rest, text.slice(start, end)].join('');
      rest = [];
      length = 0;
      start = end + 1;
    }
    if (start === text.length) continue;
    rest.push(text.slice(start));
    length += text.length - start;
    if (length > maxLineLength)
      throw invalid(`${path} has a line of more than ${maxLineLength} characters, which no run bundle has.`);
  }
  if (rest.length > 0) yield rest.join('');
};
