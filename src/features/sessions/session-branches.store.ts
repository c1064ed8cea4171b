import { setImmediate as nextTurn } from 'node:timers/promises';
import { defineStore } from '../../db/define-store.ts';
import type { Statement } from '../../db/statement.ts';
import type { SessionRow } from '../../db/tables.ts';

/**
 * How conversations share messages. A message is stored once, by the conversation that wrote it. A branch names the
 * stretches of other conversations that its history begins with: all of them, also those that its parent had from its
 * own parents, so that reading never walks a chain.
 */
export interface SessionBranchStore {
  /** Opens a branch of the first `branch.message_count` messages; fails its unit when the source is gone. */
  branched(source: SessionRow, branch: SessionRow): readonly Statement[];
  /**
   * Takes a free session away; fails its unit when a run is Queued or Running on it. `token` marks the messages for
   * `purge`.
   */
  removed(session: SessionRow, now: number, token: string): readonly Statement[];
  /** Deletes the messages of deleted sessions that no branch shares; how many there were. */
  purge(): Promise<number>;
}

// Messages deleted at once: a few milliseconds of work, after which other callers have their turn.
const purgeChunk = 500;

export const sessionBranchStore = defineStore((storage): SessionBranchStore => {
  const statement = (
    query: { compile(): { readonly sql: string; readonly parameters: readonly unknown[] } },
    mustChange = false,
  ): Statement => {
    const { sql, parameters } = query.compile();
    return { sql, parameters, mustChange };
  };

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
    const kept = await sharedUpTo(conversationId);
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
            .where('sequence', '>', kept)
            .orderBy('sequence')
            .limit(purgeChunk),
        )
        .executeTakeFirst();
      size = Number(result.numDeletedRows);
      purged += size;
      await nextTurn();
    }
    // A branch that was deleted meanwhile has set another token: its part is still to be looked at.
    if (kept < 0)
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
    branched(source, branch) {
      const last = branch.message_count - 1;
      const ownFrom = (source.branch_from_sequence ?? -1) + 1;
      const { db } = storage;
      const statements = [
        // Changes nothing; it holds the source's row, so that it cannot be deleted between here and the commit.
        statement(
          db
            .updateTable('sessions')
            .set((eb) => ({ message_count: eb.ref('message_count') }))
            .where('tenant_id', '=', source.tenant_id)
            .where('id', '=', source.id)
            .where('conversation_id', '=', source.conversation_id),
          true,
        ),
        statement(db.insertInto('sessions').values(withSummary(source, branch))),
        statement(
          db
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
            ),
        ),
      ];
      if (last >= ownFrom)
        statements.push(
          statement(
            db.insertInto('conversation_segments').values({
              conversation_id: branch.conversation_id,
              first_sequence: ownFrom,
              last_sequence: last,
              source_id: source.conversation_id,
            }),
          ),
        );
      return statements;
    },

    removed(session, now, token) {
      const { db } = storage;
      const conversationId = session.conversation_id;
      return [
        statement(
          db
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
            ),
          true,
        ),
        statement(
          db.insertInto('dropped_conversations').values({ conversation_id: conversationId, purge_token: token }),
        ),
        statement(
          db
            .updateTable('dropped_conversations')
            .set({ purge_token: token })
            .where('conversation_id', 'in', (eb) =>
              eb.selectFrom('conversation_segments').select('source_id').where('conversation_id', '=', conversationId),
            ),
        ),
        statement(db.deleteFrom('conversation_segments').where('conversation_id', '=', conversationId)),
      ];
    },

    async purge() {
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
