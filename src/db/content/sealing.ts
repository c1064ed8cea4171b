import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { AcpError } from '../../contract/errors.ts';
import { type ContentCipher, isDecryptionFailure, keyNameOf, type StoredPlace } from '../../core/content-cipher.ts';
import { readChunks } from './chunks.ts';
import {
  type AmendableDraft,
  type ContentDraft,
  type ContentPlace,
  type ContentReading,
  type ContentSource,
  digestOf,
  hashOfPlace,
} from './store.ts';

// A sealed file: a header of fixed length, then chunks of ciphertext, each with its tag. Every file has a key of its own,
// which the header keeps sealed for the file's place, with the length of the content. A chunk's nonce is its number and
// whether it is the last, so that chunks can be neither moved nor left out, and nobody holds more than one of them.
const magic = Buffer.from('acp-sealed-file\x01');
const headerBytes = 256;
const chunkBytes = 65_536;
const tagBytes = 16;
const sealedChunkBytes = chunkBytes + tagBytes;
const keyBytes = 32;

const algorithm = 'aes-256-gcm';

interface FileKey {
  readonly key: Buffer;
  /** Of the content. */
  readonly sizeBytes: number;
}

const placeOf = (place: ContentPlace): StoredPlace => ({
  table: 'attachments',
  column: 'content',
  // The folder of the tenant is the beginning of the place.
  tenantId: place.slice(0, place.indexOf('/')),
  row: [place],
});

const nonceOf = (index: number, isLast: boolean): Buffer => {
  const nonce = Buffer.alloc(12);
  nonce[0] = isLast ? 1 : 0;
  nonce.writeUIntBE(index, 6, 6);
  return nonce;
};

const sealChunk = (key: Buffer, index: number, isLast: boolean, bytes: Uint8Array): Buffer => {
  const cipher = createCipheriv(algorithm, key, nonceOf(index, isLast));
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
};

const damagedFile = (place: string, cause: unknown): AcpError =>
  new AcpError('decryption-failed', 'Stored content cannot be decrypted.', {
    cause: new Error(`The file ${place} is not authentic`, { cause }),
  });

const openChunk = (key: Buffer, index: number, isLast: boolean, bytes: Buffer, place: string): Buffer => {
  try {
    const end = bytes.length - tagBytes;
    const decipher = createDecipheriv(algorithm, key, nonceOf(index, isLast), { authTagLength: tagBytes });
    decipher.setAuthTag(bytes.subarray(Math.max(end, 0)));
    return Buffer.concat([decipher.update(bytes.subarray(0, Math.max(end, 0))), decipher.final()]);
  } catch (error) {
    throw damagedFile(place, error);
  }
};

const sealHeader = (cipher: ContentCipher, place: ContentPlace, { key, sizeBytes }: FileKey): Buffer => {
  const header = Buffer.alloc(headerBytes, ' ');
  magic.copy(header);
  header.write(cipher.seal(placeOf(place), `${key.toString('base64')} ${sizeBytes}`), magic.length, 'latin1');
  return header;
};

/** Null: what begins so is not sealed. */
const openHeader = (cipher: ContentCipher, place: ContentPlace, start: Buffer, fileBytes: number): FileKey | null => {
  if (!start.subarray(0, magic.length).equals(magic)) return null;
  const sealed = start.subarray(magic.length, headerBytes).toString('latin1').trimEnd();
  const [key = '', size = ''] = cipher.open(placeOf(place), sealed).split(' ');
  const sizeBytes = Number(size);
  const chunks = Math.max(1, Math.ceil(sizeBytes / chunkBytes));
  // Known before the first byte goes out, so that a file that was cut off is an error and not half an answer.
  if (fileBytes !== headerBytes + sizeBytes + chunks * tagBytes) throw damagedFile(place, 'It has another length.');
  return { key: Buffer.from(key, 'base64'), sizeBytes };
};

/** The id of the key of a file that begins so; null: it begins like no sealed file. */
const keyOfHeader = (start: Buffer): string | null =>
  start.subarray(0, magic.length).equals(magic)
    ? keyNameOf(start.subarray(magic.length, headerBytes).toString('latin1'))
    : null;

const isLastChunk = (index: number, sizeBytes: number): boolean => (index + 1) * chunkBytes >= sizeBytes;

const sealedDraft = (draft: AmendableDraft, cipher: ContentCipher): ContentDraft => {
  const key = randomBytes(keyBytes);
  let pending: Buffer = Buffer.alloc(0);
  let chunks = 0;
  let isSealed = false;
  let shown: { readonly index: number; readonly bytes: Buffer } | null = null;

  const put = async (bytes: Buffer, isLast: boolean): Promise<void> => {
    // Its header is known when all bytes are.
    if (chunks === 0) await draft.write(Buffer.alloc(headerBytes));
    await draft.write(sealChunk(key, chunks, isLast, bytes));
    chunks += 1;
  };
  const chunkAt = async (index: number): Promise<Buffer> => {
    if (index >= chunks) return index === chunks ? pending : Buffer.alloc(0);
    if (shown?.index !== index) {
      const sealed = await draft.read(headerBytes + index * sealedChunkBytes, sealedChunkBytes);
      shown = { index, bytes: openChunk(key, index, false, Buffer.from(sealed), 'being received') };
    }
    return shown.bytes;
  };

  return {
    async write(bytes) {
      pending = Buffer.concat([pending, bytes]);
      // The last chunk is marked, so one is kept back until something follows it.
      while (pending.length > chunkBytes) {
        const full = pending.subarray(0, chunkBytes);
        pending = pending.subarray(chunkBytes);
        await put(full, false);
      }
    },
    read: (offset, length) => readChunks(chunkAt, chunkBytes, offset, length),
    async keep(place) {
      // Once, also when it is kept a second time.
      if (!isSealed) {
        const sizeBytes = chunks * chunkBytes + pending.length;
        await put(pending, true);
        await draft.amend(0, sealHeader(cipher, place, { key, sizeBytes }));
        isSealed = true;
      }
      return draft.keep(place, cipher.activeKeyId);
    },
    discard: () => draft.discard(),
  };
};

/** The content behind a header; `rest` is what follows it. */
const openedChunks = async function* ({ key, sizeBytes }: FileKey, rest: AsyncIterable<Uint8Array>, place: string) {
  let pending: Buffer = Buffer.alloc(0);
  let index = 0;
  for await (const piece of rest) {
    pending = Buffer.concat([pending, piece]);
    while (pending.length >= sealedChunkBytes && !isLastChunk(index, sizeBytes)) {
      yield openChunk(key, index, false, pending.subarray(0, sealedChunkBytes), place);
      pending = pending.subarray(sealedChunkBytes);
      index += 1;
    }
  }
  yield openChunk(key, index, true, pending, place);
};

const following = async function* (first: Buffer, rest: AsyncIterator<Uint8Array>) {
  if (first.length > 0) yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
};

const readStart = async (pieces: AsyncIterator<Uint8Array>): Promise<Buffer> => {
  let start: Buffer = Buffer.alloc(0);
  for (let ended = false; !ended && start.length < headerBytes; ) {
    const { done, value } = await pieces.next();
    ended = done === true;
    if (value !== undefined) start = start.length === 0 ? Buffer.from(value) : Buffer.concat([start, value]);
  }
  return start;
};

/** Closes the source when it throws. */
const openedSource = async (
  source: ContentSource,
  cipher: ContentCipher,
  place: ContentPlace,
): Promise<ContentSource> => {
  const pieces = source.bytes[Symbol.asyncIterator]();
  try {
    const start = await readStart(pieces);
    const file = openHeader(cipher, place, start, source.sizeBytes);
    const bytes = async function* () {
      try {
        if (file === null) yield* following(start, pieces);
        else yield* openedChunks(file, following(start.subarray(headerBytes), pieces), place);
      } finally {
        await source.dispose();
      }
    };
    return { sizeBytes: file?.sizeBytes ?? source.sizeBytes, bytes: bytes(), dispose: () => source.dispose() };
  } catch (error) {
    await source.dispose();
    throw error;
  }
};

// Plain content may begin like a sealed file. A place has the hash of its content, which the bytes of a sealed file never
// have: so it tells the two apart where a header cannot be opened.

const headerOf = (cipher: ContentCipher, place: ContentPlace, bytes: Buffer): FileKey | null => {
  try {
    return openHeader(cipher, place, bytes, bytes.length);
  } catch (error) {
    if (createHash('sha256').update(bytes).digest('hex') === hashOfPlace(place)) return null;
    throw error;
  }
};

/** What holds bytes as they are, sealed or not. */
interface RawReading extends ContentReading {
  draft(): Promise<AmendableDraft>;
}

/**
 * Contents sealed with the active key where there is one. What is there already is read whatever it is: plain, or under a
 * former key. Throws `decryption-failed` where it cannot be.
 */
export const sealedContent = <R extends RawReading>(
  files: R,
  cipher: ContentCipher,
): Omit<R, 'draft'> & ContentReading => ({
  ...files,
  async draft() {
    const draft = await files.draft();
    return cipher.activeKeyId === null ? draft : sealedDraft(draft, cipher);
  },
  async open(place) {
    const source = await files.open(place);
    if (source === null) return null;
    try {
      return await openedSource(source, cipher, place);
    } catch (error) {
      if (!isDecryptionFailure(error)) throw error;
      const whole = await files.open(place);
      if (whole !== null && (await digestOf(whole)) !== hashOfPlace(place)) throw error;
      return files.open(place);
    }
  },
  async read(place) {
    const stored = await files.read(place);
    if (stored === null) return null;
    const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
    const file = headerOf(cipher, place, bytes);
    if (file === null) return bytes;
    const parts: Buffer[] = [];
    for (let index = 0, at = headerBytes; at < bytes.length; index += 1, at += sealedChunkBytes)
      parts.push(
        openChunk(
          file.key,
          index,
          isLastChunk(index, file.sizeBytes),
          bytes.subarray(at, at + sealedChunkBytes),
          place,
        ),
      );
    return Buffer.concat(parts);
  },
});

/** How a content is stored, as far as the beginning of its file tells. */
export interface ContentSeal {
  /** Null: it is plain. */
  readonly keyId: string | null;
  readonly readable: boolean;
}

/** Null when nothing is at the place. */
export const sealOf = async (
  files: Pick<ContentReading, 'open'>,
  cipher: ContentCipher,
  place: ContentPlace,
): Promise<ContentSeal | null> => {
  const source = await files.open(place);
  if (source === null) return null;
  let keyId: string | null = null;
  try {
    const start = await readStart(source.bytes[Symbol.asyncIterator]());
    keyId = keyOfHeader(start);
    return { keyId: openHeader(cipher, place, start, source.sizeBytes) === null ? null : keyId, readable: true };
  } catch (error) {
    if (!isDecryptionFailure(error)) throw error;
  } finally {
    await source.dispose();
  }
  const whole = await files.open(place);
  const isPlain = whole !== null && (await digestOf(whole)) === hashOfPlace(place);
  return { keyId: isPlain ? null : keyId, readable: isPlain };
};
