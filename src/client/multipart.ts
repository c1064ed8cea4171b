import { randomUUID } from 'node:crypto';
import type { UploadedFile } from '../contract/operation.ts';

export interface FormBody {
  readonly contentType: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** As browsers write a file name into a part's header. */
const quoted = (text: string): string =>
  text.replace(/["\r\n]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);

/** A form of one file part (RFC 7578), made while it is read. */
export const encodeUpload = (part: string, file: UploadedFile): FormBody => {
  const boundary = `acp-${randomUUID()}`;
  const head =
    `--${boundary}\r\n` +
    `Content-Disposition: form-data; name="${quoted(part)}"; filename="${quoted(file.name ?? '')}"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n';
  const bytes = async function* (): AsyncGenerator<Uint8Array, void> {
    yield Buffer.from(head);
    yield* file.bytes;
    yield Buffer.from(`\r\n--${boundary}--\r\n`);
  };
  return { contentType: `multipart/form-data; boundary=${boundary}`, bytes: bytes() };
};
