import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement } from '../../db/statement.ts';
import type { SessionRequestRow } from '../../db/tables/approvals.ts';
import type { OpenAiConversationRow, OpenAiResponseRow } from '../../db/tables/openai.ts';

export const responseStore = defineStore(({ db, rows, atomic }) => {
  const conversation = async (tenantId: string, id: string): Promise<OpenAiConversationRow | undefined> => {
    const row = await db
      .selectFrom('openai_conversations')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('id', '=', id)
      .executeTakeFirst();
    return row === undefined ? undefined : rows.open('openai_conversations', tenantId, row);
  };
  return {
    /** Written with the row of the run. */
    opened: insertStatement(db, 'openai_responses', (row: OpenAiResponseRow) =>
      rows.seal('openai_responses', row.tenant_id, row),
    ),
    async get(tenantId: string, id: string): Promise<OpenAiResponseRow | undefined> {
      const row = await db
        .selectFrom('openai_responses')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst();
      return row === undefined ? undefined : rows.open('openai_responses', tenantId, row);
    },
    /** False: it was not there. */
    async remove(tenantId: string, id: string): Promise<boolean> {
      const { numDeletedRows } = await db
        .deleteFrom('openai_responses')
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },
    conversation,
    /** Creates it, or replaces its metadata. */
    saveConversation: (row: OpenAiConversationRow): Promise<unknown> =>
      db
        .insertInto('openai_conversations')
        .values(rows.seal('openai_conversations', row.tenant_id, row))
        .onConflict((conflict) =>
          conflict.columns(['tenant_id', 'id']).doUpdateSet((eb) => ({ metadata: eb.ref('excluded.metadata') })),
        )
        .execute(),
    async removeConversation(tenantId: string, id: string): Promise<boolean> {
      const { numDeletedRows } = await db
        .deleteFrom('openai_conversations')
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },
    /**
     * What some runs of a session have asked of its caller's program is asked in a branch of it, too: each may be answered in its
     * own way. A branch ends with the last of these runs, and so waits for what that has asked, whatever came of it in the session.
     */
    branchRequests: (
      tenantId: string,
      from: string,
      to: string,
      runIds: readonly string[],
      last: string,
    ): Promise<void> =>
      atomic(async (unit) => {
        if (runIds.length === 0) return;
        const requests: SessionRequestRow[] = await unit
          .selectFrom('session_requests')
          .selectAll()
          .where('tenant_id', '=', tenantId)
          .where('session_id', '=', from)
          .where('run_id', 'in', runIds)
          .execute();
        if (requests.length === 0) return;
        await unit
          .insertInto('session_requests')
          .values(requests.map((row) => ({ ...row, session_id: to, state: row.run_id === last ? 'Open' : row.state })))
          .execute();
      }),
  };
});

export type ResponseStore = StoreOf<typeof responseStore>;
