import { defineStore, deletesRow, type StoreOf } from '../define-store.ts';
import { statementOf } from '../statement.ts';
import type { AttachmentContentRow } from '../tables/contents.ts';
import { isNamed } from './rows.ts';
import type { KeptIn } from './spaces/space.ts';
import type { ContentPlace } from './store.ts';

/** Whether an update has met a row. */
const changesRow = async (query: {
  executeTakeFirst(): Promise<{ readonly numUpdatedRows: bigint } | undefined>;
}): Promise<boolean> => ((await query.executeTakeFirst())?.numUpdatedRows ?? 0n) > 0n;

export interface Placement {
  readonly id: string;
  readonly keptIn: KeptIn;
  readonly place: ContentPlace;
  readonly keyId: string | null;
  readonly storedBytes: number;
}

/**
 * What lies where, beside the folder of a store file. A row without a place is a draft, or was released; whoever removes
 * bytes has released their row before, and removes it after.
 */
export const contentIndexStore = defineStore((handle) => {
  const table = 'attachment_contents';
  const released = { place: null, touched_at: 0 };
  /** A draft that nobody has taken for abandoned. */
  const draftOf = (id: string) =>
    handle.db.updateTable(table).where('id', '=', id).where('place', 'is', null).where('touched_at', '>', 0);
  return {
    isNamed: (place: ContentPlace): Promise<boolean> => isNamed(handle.db, place),
    async begin(id: string, keptIn: KeptIn, now: number): Promise<void> {
      await handle.db
        .insertInto(table)
        .values({ id, kept_in: keptIn, place: null, key_id: null, stored_bytes: 0, touched_at: now })
        .execute();
    },
    /** False: the draft was taken for abandoned. */
    touch: (id: string, now: number): Promise<boolean> => changesRow(draftOf(id).set({ touched_at: now })),
    /** Writes a piece of a draft that is there. Throws ConditionFailedError for one that was taken for abandoned. */
    addChunk: (id: string, number: number, bytes: Uint8Array, now: number): Promise<void> =>
      handle.write([
        statementOf(draftOf(id).set({ touched_at: now }), { mustChange: true }),
        statementOf(handle.db.insertInto('attachment_chunks').values({ content_id: id, number, bytes })),
      ]),
    /** Replaces the bytes of a piece of a draft; false: it was taken for abandoned. */
    changeChunk: (id: string, number: number, bytes: Uint8Array): Promise<boolean> =>
      changesRow(
        handle.db
          .updateTable('attachment_chunks')
          .set({ bytes })
          .where('content_id', '=', id)
          .where('number', '=', number),
      ),
    async chunk(id: string, number: number): Promise<Buffer | null> {
      const row = await handle.db
        .selectFrom('attachment_chunks')
        .select('bytes')
        .where('content_id', '=', id)
        .where('number', '=', number)
        .executeTakeFirst();
      return row === undefined ? null : Buffer.from(row.bytes.buffer, row.bytes.byteOffset, row.bytes.byteLength);
    },
    /** False: there was none from this number on. */
    removeChunks: (id: string, from: number, count: number): Promise<boolean> =>
      deletesRow(
        handle.db
          .deleteFrom('attachment_chunks')
          .where('content_id', '=', id)
          .where('number', '>=', from)
          .where('number', '<', from + count),
      ),
    get: (id: string): Promise<AttachmentContentRow | undefined> =>
      handle.db.selectFrom(table).selectAll().where('id', '=', id).executeTakeFirst(),
    copiesAt: (place: ContentPlace): Promise<readonly AttachmentContentRow[]> =>
      handle.db.selectFrom(table).selectAll().where('place', '=', place).orderBy('kept_in').execute(),
    /**
     * Gives a draft its place, instead of what this kind of place has there. That may be being read: it goes when it has
     * not been touched for a while. False: the draft was taken for abandoned.
     */
    async publish({ id, keptIn, place, keyId, storedBytes }: Placement, now: number): Promise<boolean> {
      await handle.db
        .updateTable(table)
        .set({ place: null, touched_at: now })
        .where('place', '=', place)
        .where('kept_in', '=', keptIn)
        .execute();
      return changesRow(draftOf(id).set({ place, key_id: keyId, stored_bytes: storedBytes, touched_at: now }));
    },
    /** Releases what is at a place; which kinds of place have it. */
    forget: (
      place: ContentPlace,
      keptIn: readonly KeptIn[],
    ): Promise<readonly Pick<AttachmentContentRow, 'id' | 'kept_in'>[]> =>
      handle.db
        .updateTable(table)
        .set(released)
        .where('place', '=', place)
        .where('kept_in', 'in', keptIn)
        .returning(['id', 'kept_in'])
        .execute(),
    /** Releases a draft, or what was released with time to be read; false: it has a place, or is gone. */
    release: (id: string, untouchedSince: number): Promise<boolean> =>
      changesRow(
        handle.db
          .updateTable(table)
          .set(released)
          .where('id', '=', id)
          .where('place', 'is', null)
          .where('touched_at', '<=', untouchedSince),
      ),
    /** Last, when the bytes are gone. */
    async end(id: string): Promise<void> {
      await handle.db
        .deleteFrom(table)
        .where('id', '=', id)
        .where('place', 'is', null)
        .where('touched_at', '=', 0)
        .execute();
    },
    /** Under which keys contents are; null: some are plain. */
    async keyIds(): Promise<readonly (string | null)[]> {
      const rows = await handle.db
        .selectFrom(table)
        .select('key_id')
        .distinct()
        .where('place', 'is not', null)
        .execute();
      return rows.map((row) => row.key_id);
    },
    loose: (keptIn: readonly KeptIn[], untouchedSince: number, limit: number) =>
      handle.db
        .selectFrom(table)
        .select(['id', 'kept_in'])
        .where('place', 'is', null)
        .where('touched_at', '<=', untouchedSince)
        .where('kept_in', 'in', keptIn)
        .orderBy('touched_at')
        .orderBy('id')
        .limit(limit)
        .execute(),
    /** Contents of these kinds of place in the order of their places, after one of them; null: from the first. */
    placed(keptIn: readonly KeptIn[], after: string | null, limit: number): Promise<readonly AttachmentContentRow[]> {
      let rows = handle.db.selectFrom(table).selectAll().where('kept_in', 'in', keptIn);
      rows = after === null ? rows.where('place', 'is not', null) : rows.where('place', '>', after);
      return rows.orderBy('place').orderBy('kept_in').limit(limit).execute();
    },
  };
});

export type ContentIndex = StoreOf<typeof contentIndexStore>;
