import { AcpError } from '../../../contract/errors.ts';
import { ConditionFailedError } from '../../statement.ts';
import { readChunks } from '../chunks.ts';
import type { ContentIndex } from '../content-index.store.ts';
import type { ByteRange, ContentSpace, SpaceDraft } from './space.ts';

// What one statement carries: small enough that other commits do not wait, large enough that a file is few of them.
const chunkBytes = 262_144;
// Rows that one statement deletes.
const chunksAtOnce = 16;

const ended = (): AcpError =>
  new AcpError('store-unavailable', 'The file took too long to come, and what had come was removed.');

const createDraft = (index: ContentIndex, id: string, now: () => number): SpaceDraft => {
  let pending: Buffer = Buffer.alloc(0);
  let stored = 0;

  const store = async (bytes: Buffer): Promise<void> => {
    try {
      await index.addChunk(id, stored, bytes, now());
    } catch (error) {
      throw error instanceof ConditionFailedError ? ended() : error;
    }
    stored += 1;
  };
  const chunkAt = async (number: number): Promise<Buffer> =>
    number < stored
      ? ((await index.chunk(id, number)) ?? Buffer.alloc(0))
      : number === stored
        ? pending
        : Buffer.alloc(0);

  return {
    async write(bytes) {
      pending = Buffer.concat([pending, bytes]);
      while (pending.length >= chunkBytes) {
        const full = Buffer.from(pending.subarray(0, chunkBytes));
        pending = pending.subarray(chunkBytes);
        await store(full);
      }
    },
    async amend(offset, bytes) {
      for (let at = offset; at < offset + bytes.length; ) {
        const number = Math.floor(at / chunkBytes);
        const chunk = Buffer.from(await chunkAt(number));
        const copied = Buffer.from(bytes.subarray(at - offset)).copy(chunk, at % chunkBytes);
        if (copied === 0) throw ended();
        if (number === stored) pending = chunk;
        else if (!(await index.changeChunk(id, number, chunk))) throw ended();
        at += copied;
      }
    },
    read: (offset, length) => readChunks(chunkAt, chunkBytes, offset, length),
    async finish() {
      if (pending.length === 0 && stored > 0) return;
      const last = pending;
      pending = Buffer.alloc(0);
      await store(last);
    },
    close: async () => undefined,
  };
};

/** Pieces in their order. A content that is deleted meanwhile ends with an error, never early. */
const chunksOf = async function* (index: ContentIndex, id: string, { offset, length }: ByteRange) {
  for (let at = offset; at < offset + length; ) {
    const chunk = await index.chunk(id, Math.floor(at / chunkBytes));
    const from = at % chunkBytes;
    const part = chunk?.subarray(from, from + offset + length - at) ?? Buffer.alloc(0);
    if (part.length === 0)
      throw new AcpError('store-unavailable', 'The contents of an attachment cannot be read to their end.', {
        cause: new Error(`There is no byte ${at} of content ${id}`),
      });
    yield part;
    at += part.length;
  }
};

/** Contents in the database itself, piece by piece: no statement has more than one, and none waits for a sender. */
export const databaseSpace = (index: ContentIndex, now: () => number): ContentSpace => ({
  keptIn: 'Database',
  // The condition of the store is the condition of this, and its writes are refused by it.
  assertWritable: () => undefined,
  draft: async (id) => createDraft(index, id, now),
  async open(id, range) {
    const row = await index.get(id);
    // Where nothing of it is left, that is known before the first byte goes out.
    if (row === undefined || (await index.chunk(id, 0)) === null) return null;
    const sizeBytes = row.stored_bytes;
    const { offset, length } = range ?? { offset: 0, length: sizeBytes };
    const within = { offset, length: Math.max(0, Math.min(length, sizeBytes - offset)) };
    return { sizeBytes, bytes: chunksOf(index, id, within), dispose: async () => undefined };
  },
  has: async (id, sizeBytes) => {
    const last = Math.max(0, Math.ceil(sizeBytes / chunkBytes) - 1);
    return (await index.chunk(id, last))?.length === sizeBytes - last * chunkBytes;
  },
  async remove(id) {
    for (let from = 0; await index.removeChunks(id, from, chunksAtOnce); from += chunksAtOnce);
  },
});
