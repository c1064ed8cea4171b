import { defineStore, type StoreOf } from '../../../db/define-store.ts';
import { insertStatement, updateStatement } from '../../../db/statement.ts';
import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import type { ToolInvocationRow } from '../../../db/tables.ts';

/** What paused sessions wait for. A request is answered once, or void, and stays as that. */
export const sessionRequestStore = defineStore((storage) => {
  const answered = updateStatement(
    storage.db,
    'session_requests',
    ({ tenant_id, session_id, run_id, id }: SessionRequestRow) => ({
      // What a remote tool goes on with is the next run's now.
      set: { state: 'Answered', asked: null },
      where: { tenant_id, session_id, run_id, id, state: 'Open' },
    }),
    { mustChange: true },
  );
  return {
    /** Every request that the session ever had, the newest pause first, in the order of its calls. */
    async list(tenantId: string, sessionId: string): Promise<readonly SessionRequestRow[]> {
      const rows = await storage.db
        .selectFrom('session_requests')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('session_id', '=', sessionId)
        .orderBy('created_at', 'desc')
        .orderBy('run_id', 'desc')
        .orderBy('position')
        .execute();
      return rows.map((row) => storage.rows.open('session_requests', tenantId, row));
    },
    /** What later runs of the session have begun of the calls of these requests. */
    async made(rows: readonly SessionRequestRow[]): Promise<readonly ToolInvocationRow[]> {
      const [first] = rows;
      if (first === undefined) return [];
      const calls = await storage.db
        .selectFrom('tool_invocations')
        .innerJoin('runs', 'runs.id', 'tool_invocations.run_id')
        .selectAll('tool_invocations')
        .where('runs.tenant_id', '=', first.tenant_id)
        .where('runs.session_id', '=', first.session_id)
        .where(
          'tool_invocations.idempotency_key',
          'in',
          rows.map(({ idempotency_key }) => idempotency_key),
        )
        .execute();
      return calls.map((row) => storage.rows.open('tool_invocations', first.tenant_id, row));
    },
    inserted: insertStatement(storage.db, 'session_requests', (row: SessionRequestRow) =>
      storage.rows.seal('session_requests', row.tenant_id, row),
    ),
    /** All of them; fails its unit when one is not open any more. */
    answer: (rows: readonly SessionRequestRow[]): Promise<void> => storage.write(rows.map((row) => answered(row))),
    async voidOpen(tenantId: string, sessionId: string): Promise<void> {
      await storage.db
        .updateTable('session_requests')
        .set({ state: 'Void', asked: null })
        .where('tenant_id', '=', tenantId)
        .where('session_id', '=', sessionId)
        .where('state', '=', 'Open')
        .execute();
    },
    async drop(tenantId: string, sessionId: string): Promise<void> {
      await storage.db
        .deleteFrom('session_requests')
        .where('tenant_id', '=', tenantId)
        .where('session_id', '=', sessionId)
        .execute();
    },
  };
});

export type SessionRequestStore = StoreOf<typeof sessionRequestStore>;
