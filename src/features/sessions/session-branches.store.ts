import { setImmediate as nextTurn } from 'node:timers/promises';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';

// Messages deleted at once: a few milliseconds of work, after which other callers have their turn.
const purgeChunk = 500;

/**
 * How conversations share messages. A message is stored once, by the conversation that wrote it. A branch names the
 * stretches of other conversations that its history begins with: all of them, also those that its parent had from its
 * own parents, so that reading never walks a chain.
 */
export const sessionBranchStore = defineStore((storage) => {
  /** The branch with the summary of its source, under its own name. */
  const withSummary = (source: SessionRow, branch: SessionRow): SessionRow => {
    const { summary } = storage.rows.open('sessions', source.tenant_id, source);
    return storage.rows.seal('sessions', branch.tenant_id, { ...branch, summary });
  };

  /** What branches still share of a conversation: its messages up to here; -1: nothing. */
  const sharedUpTo = async (conversationId: string): Promise<number> => {
    const row = await storage.db
      .selectFrom('conversation_segments')
      .select((eb) => eb.fn.max('last_sequence').as('last'))
      .where('source_id', '=', conversationId)
      .executeTakeFirst();
    return row?.last ?? -1;
  };

  const purgeOne = async (conversationId: string, token: string): Promise<number> => {
    // Only a conversation that shares them already could share more of them, so the limit can but fall.
    const lastShared = await sharedUpTo(conversationId);
    let purged = 0;
    for (let size = purgeChunk; size === purgeChunk; ) {
      const result = await storage.db
        .deleteFrom('session_messages')
        .where('conversation_id', '=', conversationId)
        .where('sequence', 'in', (eb) =>
          eb
            .selectFrom('session_messages')
            .select('sequence')
            .where('conversation_id', '=', conversationId)
            .where('sequence', '>', lastShared)
            .orderBy('sequence')
            .limit(purgeChunk),
        )
        .executeTakeFirst();
      size = Number(result.numDeletedRows);
      purged += size;
      await nextTurn();
    }
    // A branch that was deleted meanwhile has set another token: its part is still to be looked at.
    if (lastShared < 0)
      await storage.db
        .deleteFrom('dropped_conversations')
        .where('conversation_id', '=', conversationId)
        .where('purge_token', '=', token)
        .execute();
    else
      await storage.db
        .updateTable('dropped_conversations')
        .set({ purge_token: null })
        .where('conversation_id', '=', conversationId)
        .where('purge_token', '=', token)
        .execute();
    return purged;
  };

  return {
    /** Opens a branch of the first `branch.message_count` messages; fails its unit when the source is gone. */
    branch: (source: SessionRow, branch: SessionRow): Promise<void> =>
      storage.atomic(async (db) => {
        const last = branch.message_count - 1;
        const ownFrom = (source.branch_from_sequence ?? -1) + 1;
        // Changes nothing; it holds the source's row, so that it cannot be deleted between here and the commit.
        const { numUpdatedRows } = await db
          .updateTable('sessions')
          .set((eb) => ({ message_count: eb.ref('message_count') }))
          .where('tenant_id', '=', source.tenant_id)
          .where('id', '=', source.id)
          .where('conversation_id', '=', source.conversation_id)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw new ConditionFailedError();
        await db.insertInto('sessions').values(withSummary(source, branch)).execute();
        await db
          .insertInto('conversation_segments')
          .columns(['conversation_id', 'first_sequence', 'last_sequence', 'source_id'])
          .expression((eb) =>
            eb
              .selectFrom('conversation_segments')
              .select((row) => [
                row.val(branch.conversation_id).as('conversation_id'),
                'first_sequence',
                row
                  .case()
                  .when('last_sequence', '<', last)
                  .then(row.ref('last_sequence'))
                  .else(last)
                  .end()
                  .as('last_sequence'),
                'source_id',
              ])
              .where('conversation_id', '=', source.conversation_id)
              .where('first_sequence', '<=', last),
          )
          .execute();
        if (last < ownFrom) return;
        await db
          .insertInto('conversation_segments')
          .values({
            conversation_id: branch.conversation_id,
            first_sequence: ownFrom,
            last_sequence: last,
            source_id: source.conversation_id,
          })
          .execute();
      }),

    /**
     * Takes a free session away; fails its unit when a run is Queued or Running on it. `token` marks the messages for
     * `purge`.
     */
    remove: (session: SessionRow, now: number, token: string): Promise<void> =>
      storage.atomic(async (db) => {
        const { conversation_id: conversationId } = session;
        const { numDeletedRows } = await db
          .deleteFrom('sessions')
          .where('tenant_id', '=', session.tenant_id)
          .where('id', '=', session.id)
          .where('conversation_id', '=', conversationId)
          .where((eb) => eb.or([eb('active_run_id', 'is', null), eb('lock_until', '<', now)]))
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('runs')
                  .select('id')
                  .where('tenant_id', '=', session.tenant_id)
                  .where('session_id', '=', session.id)
                  .where('status', 'in', ['Queued', 'Running']),
              ),
            ),
          )
          .executeTakeFirst();
        if (numDeletedRows === 0n) throw new ConditionFailedError();
        await db
          .insertInto('dropped_conversations')
          .values({ conversation_id: conversationId, purge_token: token })
          .execute();
        await db
          .updateTable('dropped_conversations')
          .set({ purge_token: token })
          .where('conversation_id', 'in', (eb) =>
            eb.selectFrom('conversation_segments').select('source_id').where('conversation_id', '=', conversationId),
          )
          .execute();
        await db.deleteFrom('conversation_segments').where('conversation_id', '=', conversationId).execute();
      }),

    /** Deletes the messages of deleted sessions that no branch shares; how many there were. */
    async purge(): Promise<number> {
      const dropped = await storage.db
        .selectFrom('dropped_conversations')
        .selectAll()
        .where('purge_token', 'is not', null)
        .execute();
      let purged = 0;
      for (const row of dropped) purged += await purgeOne(row.conversation_id, row.purge_token ?? '');
      return purged;
    },
  };
});

export type SessionBranchStore = StoreOf<typeof sessionBranchStore>;
