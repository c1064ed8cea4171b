import { createHash } from 'node:crypto';
import type { FileSource } from '../../contract/operation.ts';
import type { UnitOfWork } from '../unit-of-work.ts';

/** Where a content stands: folder of its tenant, two digits, and its SHA-256. */
export type ContentPlace = string & { readonly brand: 'ContentPlace' };

/** Bytes at a place, whose number is known. */
export type ContentSource = FileSource & { readonly sizeBytes: number };

/**
 * The end of keeping a draft, in the unit of work that writes the rows which name its place. Throws `ContentGone` when
 * equal bytes that were to be used again went meanwhile: keeping it once more stores them.
 */
export type Placing = (stores: UnitOfWork) => Promise<void>;

export class ContentGone extends Error {}

/** Bytes that are being received. They have no place yet, and go with `discard`. */
export interface ContentDraft {
  /** Resolves when the bytes are taken, so that a slow disk slows the sender. */
  write(bytes: Uint8Array): Promise<void>;
  /** At most `length` bytes from `offset`, of what was written. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Durable when this resolves, and at its place when what it gives has been committed. Equal bytes may be there already. */
  keep(place: ContentPlace): Promise<Placing>;
  /** Safe to call at any time, after `keep` too. */
  discard(): Promise<void>;
}

/** A draft of which bytes that were written can be written anew. */
export interface AmendableDraft extends ContentDraft {
  amend(offset: number, bytes: Uint8Array): Promise<void>;
  /** `keyId`: the key that the bytes are sealed under. */
  keep(place: ContentPlace, keyId?: string | null): Promise<Placing>;
}

/** Where bytes are read and received. */
export interface ContentReading {
  draft(): Promise<ContentDraft>;
  /** Null when nothing is there. */
  open(place: ContentPlace): Promise<ContentSource | null>;
  read(place: ContentPlace): Promise<Uint8Array | null>;
}

/** What is below the content store: one kind of place, or several, with nothing known of the rows that name contents. */
export interface KeptContents extends ContentReading {
  /** Throws while contents can be neither kept nor removed: before rows go whose bytes would stay behind. */
  assertWritable(): void;
  /** In the unit that has found no row which names the place. What it gives removes the bytes, after the commit. */
  forget(stores: UnitOfWork, place: ContentPlace): Promise<() => Promise<void>>;
  places(): AsyncIterable<ContentPlace>;
  /** Removes what the one owner of the store was receiving when its process died. */
  removeDrafts(): Promise<void>;
  /**
   * Removes what was being received or was released, and that nobody has touched since then; how many. Safe beside other
   * processes. In epoch milliseconds.
   */
  removeLoose(untouchedSince: number, signal?: AbortSignal): Promise<number>;
}

/** Contents that lie as they are, sealed or not. */
export interface RawContents extends KeptContents {
  draft(): Promise<AmendableDraft>;
}

/** Bytes of attachments by tenant and hash. What is at a place never changes. Design: docs/design/contents.md. */
export interface ContentStore extends ContentReading {
  assertWritable(): void;
  /** Keeps a draft together with the rows that name its place, or neither: no row is ever without bytes. */
  keep(draft: ContentDraft, place: ContentPlace, name: Placing): Promise<void>;
  /** Removes what is at a place, unless a row names it; false: one does. */
  removeUnnamed(place: ContentPlace): Promise<boolean>;
  /** Looks at every content, and removes what no row names; how many. The signal ends it early. */
  sweep(signal: AbortSignal): Promise<number>;
  removeDrafts(): Promise<void>;
  removeLoose(signal: AbortSignal): Promise<number>;
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

/** All bytes of a source, which is closed. */
export const wholeOf = async (source: ContentSource): Promise<Uint8Array> => {
  const parts: Uint8Array[] = [];
  try {
    for await (const part of source.bytes) parts.push(part);
  } finally {
    await source.dispose();
  }
  const [only] = parts;
  return only !== undefined && parts.length === 1 ? only : Buffer.concat(parts);
};
