import { tableOf } from './table-of.ts';

/** Bytes of an attachment that do not lie in the folder beside a store file. */
export interface AttachmentContentRow {
  /** Names the bytes where they lie; never used twice. */
  id: string;
  kept_in: string;
  /** Null: being received, or released. At most one in each kind of place. */
  place: string | null;
  /** The key that they are sealed under; null: plain. */
  key_id: string | null;
  stored_bytes: number;
  /** Of what has no place: when it was last written to; 0: released, nobody reads or writes it any more. */
  touched_at: number;
}

/** A piece of what lies in the database. */
export interface AttachmentChunkRow {
  content_id: string;
  number: number;
  bytes: Uint8Array;
}

/** What a shared folder or a bucket has written into it, so that it is known again. */
export interface AttachmentPlaceRow {
  kept_in: string;
  marker: string;
}

/** A key of the service itself. */
export interface ServiceSecretRow {
  /** Empty: it is no tenant's. */
  tenant_id: string;
  name: string;
  value: string;
}

export const contentTables = {
  attachment_contents: tableOf<AttachmentContentRow>(),
  attachment_chunks: tableOf<AttachmentChunkRow>(),
  attachment_places: tableOf<AttachmentPlaceRow>(),
  own_secrets: tableOf<ServiceSecretRow>(),
};
