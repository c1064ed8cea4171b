import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { AttachmentRow } from '../../db/tables.ts';

export interface AttachmentFilter {
  readonly sessionId: string | null;
  /** Only what is in sessions of this owner, or is the owner's own outside of any; null: all of the tenant's. */
  readonly ownerId: string | null;
  readonly skip: number;
  readonly take: number;
}

export const attachmentStore = defineStore((storage) => {
  const rowsOf = (tenantId: string) =>
    storage.db.selectFrom('attachments').selectAll().where('tenant_id', '=', tenantId);
  return {
    async insert(row: AttachmentRow): Promise<void> {
      await storage.db.insertInto('attachments').values(row).execute();
    },
    get: (tenantId: string, id: string): Promise<AttachmentRow | undefined> =>
      rowsOf(tenantId).where('id', '=', id).executeTakeFirst(),
    /** In no order; ids without a row are missing. */
    getAll: async (tenantId: string, ids: readonly string[]): Promise<readonly AttachmentRow[]> =>
      ids.length === 0 ? [] : rowsOf(tenantId).where('id', 'in', ids).execute(),
    /** Newest first. */
    list(tenantId: string, { sessionId, ownerId, skip, take }: AttachmentFilter): Promise<readonly AttachmentRow[]> {
      let rows = rowsOf(tenantId);
      if (sessionId !== null) rows = rows.where('session_id', '=', sessionId);
      if (ownerId !== null)
        rows = rows.where((eb) => {
          const session = eb
            .selectFrom('sessions')
            .whereRef('sessions.tenant_id', '=', 'attachments.tenant_id')
            .whereRef('sessions.id', '=', 'attachments.session_id');
          const inOwned = eb.exists(session.select('sessions.id').where('sessions.owner_id', '=', ownerId));
          const inNone = eb.not(eb.exists(session.select('sessions.id')));
          return eb.or([inOwned, eb.and([inNone, eb('owner_id', '=', ownerId)])]);
        });
      return rows.orderBy('id', 'desc').limit(take).offset(skip).execute();
    },
    ofSession: (tenantId: string, sessionId: string): Promise<readonly AttachmentRow[]> =>
      rowsOf(tenantId).where('session_id', '=', sessionId).execute(),
    /** What a run has made, oldest first. */
    ofRun: (tenantId: string, runId: string): Promise<readonly AttachmentRow[]> =>
      rowsOf(tenantId).where('run_id', '=', runId).orderBy('id').execute(),
    /** False when it was gone. */
    remove: (tenantId: string, id: string) =>
      deletesRow(storage.db.deleteFrom('attachments').where('tenant_id', '=', tenantId).where('id', '=', id)),
    /** Deletes it while it has no session, or one that is gone; undefined: it stays, or was gone. */
    removeOrphan: (tenantId: string, id: string): Promise<AttachmentRow | undefined> =>
      storage.db
        .deleteFrom('attachments')
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .where((eb) =>
          eb.or([
            eb('session_id', 'is', null),
            eb.not(
              eb.exists(
                eb
                  .selectFrom('sessions')
                  .select('sessions.id')
                  .where('sessions.tenant_id', '=', tenantId)
                  .whereRef('sessions.id', '=', 'attachments.session_id'),
              ),
            ),
          ]),
        )
        .returningAll()
        .executeTakeFirst(),
    async removeOfSession(tenantId: string, sessionId: string): Promise<void> {
      await storage.db
        .deleteFrom('attachments')
        .where('tenant_id', '=', tenantId)
        .where('session_id', '=', sessionId)
        .execute();
    },
    /** Those of the ids that have no session get this one. */
    async link(tenantId: string, ids: readonly string[], sessionId: string): Promise<void> {
      if (ids.length === 0) return;
      await storage.db
        .updateTable('attachments')
        .set({ session_id: sessionId })
        .where('tenant_id', '=', tenantId)
        .where('id', 'in', ids)
        .where('session_id', 'is', null)
        .execute();
    },
  };
});

export type AttachmentStore = StoreOf<typeof attachmentStore>;
