import { createHash } from 'node:crypto';
import type { FileSource } from '../../contract/operation.ts';

/** Where a content stands: folder of its tenant, two digits, and its SHA-256. */
export type ContentPlace = string & { readonly brand: 'ContentPlace' };

/** Bytes at a place, whose number is known. */
export type ContentSource = FileSource & { readonly sizeBytes: number };

/** Bytes that are being received. They have no place yet, and go with `discard`. */
export interface ContentDraft {
  /** Resolves when the bytes are taken, so that a slow disk slows the sender. */
  write(bytes: Uint8Array): Promise<void>;
  /** At most `length` bytes from `offset`, of what was written. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Durable at its place when this resolves. Equal bytes may be there already. */
  keep(place: ContentPlace): Promise<void>;
  /** Safe to call at any time, after `keep` too. */
  discard(): Promise<void>;
}

/** Bytes of attachments, outside the database, by tenant and hash. What is at a place never changes. */
export interface ContentStore {
  /** Throws while contents can be neither kept nor removed: before rows go whose bytes would stay behind. */
  assertWritable(): void;
  draft(): Promise<ContentDraft>;
  /** Null when nothing is there. */
  open(place: ContentPlace): Promise<ContentSource | null>;
  read(place: ContentPlace): Promise<Uint8Array | null>;
  remove(place: ContentPlace): Promise<void>;
  /**
   * One piece of work on a place at a time: bytes are kept and their row written, or the last row found missing and the
   * bytes removed, never the two mixed.
   */
  exclusive<T>(place: ContentPlace, work: () => Promise<T>): Promise<T>;
  places(): AsyncIterable<ContentPlace>;
  /** Removes what was being received when a process died. */
  removeDrafts(): Promise<void>;
}

const hexHash = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Tenants are hashed: a slug may be any of `.`, `..` or a name that a file system takes for another. */
export const contentPlace = (tenantId: string, sha256: string): ContentPlace =>
  `${hexHash(tenantId).slice(0, 32)}/${sha256.slice(0, 2)}/${sha256}` as ContentPlace;

export const hashOfPlace = (place: ContentPlace): string => place.slice(place.lastIndexOf('/') + 1);

/** SHA-256 of all bytes, in hex; each piece is shown to `use` on its way. Closes the source. */
export const digestOf = async (
  source: ContentSource,
  use: (chunk: Uint8Array) => Promise<void> = async () => undefined,
): Promise<string> => {
  const hash = createHash('sha256');
  try {
    for await (const chunk of source.bytes) {
      hash.update(chunk);
      await use(chunk);
    }
  } finally {
    await source.dispose();
  }
  return hash.digest('hex');
};

/** Work in line for each place; a place without work costs nothing. */
export const createPlaceLocks = (): ContentStore['exclusive'] => {
  const last = new Map<ContentPlace, Promise<unknown>>();
  return async (place, work) => {
    const before = last.get(place) ?? Promise.resolve();
    const mine = before.then(work, work);
    last.set(place, mine);
    try {
      return await mine;
    } finally {
      if (last.get(place) === mine) last.delete(place);
    }
  };
};
