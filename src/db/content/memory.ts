import type { ContentDraft, ContentPlace, KeptContents } from './store.ts';

const once = async function* (bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
};

const createDraft = (contents: Map<ContentPlace, Uint8Array>): ContentDraft => {
  let chunks: Uint8Array[] = [];
  const joined = (): Uint8Array => {
    const [only] = chunks;
    if (only === undefined || chunks.length > 1) chunks = [Buffer.concat(chunks)];
    return chunks[0] ?? new Uint8Array(0);
  };
  return {
    async write(bytes) {
      // A copy: the sender may use its buffer again.
      chunks.push(Uint8Array.from(bytes));
    },
    read: async (offset, length) => joined().subarray(offset, offset + length),
    async keep(place) {
      contents.set(place, joined());
      return async () => undefined;
    },
    async discard() {
      chunks = [];
    },
  };
};

/** Contents of a store in memory; gone with the process, like its rows. */
export const memoryContent = (): KeptContents => {
  const contents = new Map<ContentPlace, Uint8Array>();
  return {
    assertWritable: () => undefined,
    draft: async () => createDraft(contents),
    async open(place) {
      const bytes = contents.get(place);
      if (bytes === undefined) return null;
      return { sizeBytes: bytes.byteLength, bytes: once(bytes), dispose: async () => undefined };
    },
    read: async (place) => contents.get(place) ?? null,
    forget: async (_stores, place) => async () => void contents.delete(place),
    async *places() {
      yield* [...contents.keys()];
    },
    removeDrafts: async () => undefined,
    removeLoose: async () => 0,
  };
};
