import type { ContentSource } from '../store.ts';

/** Kinds of place that several processes can have in common. */
export const spaceNames = ['Database', 'Folder', 'S3'] as const;
export type KeptIn = (typeof spaceNames)[number];

/** Bytes that are being received under a name of their own. */
export interface SpaceDraft {
  write(bytes: Uint8Array): Promise<void>;
  /** Writes bytes that were written anew. */
  amend(offset: number, bytes: Uint8Array): Promise<void>;
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Durable under the name when this resolves. */
  finish(): Promise<void>;
  /** Gives up what this process has of it. What lies under the name is removed by whoever releases that. */
  close(): Promise<void>;
}

/** A part of a content, in bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * Bytes under names that are never used twice, so that nobody who is late can remove or overwrite what another process
 * has stored. Failures are `store-unavailable`.
 */
export interface ContentSpace {
  readonly keptIn: KeptIn;
  /** Throws while it takes nothing. */
  assertWritable(): void;
  draft(id: string): Promise<SpaceDraft>;
  /** Null: there is nothing of this name. `sizeBytes` of what is opened is that of the whole, also for a range. */
  open(id: string, range?: ByteRange): Promise<ContentSource | null>;
  has(id: string, sizeBytes: number): Promise<boolean>;
  /** Of whatever state: whole, or half received by a process that died. */
  remove(id: string): Promise<void>;
}
