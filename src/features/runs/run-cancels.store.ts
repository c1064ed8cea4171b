import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { RunCancelRow } from '../../db/tables/run-cancels.ts';

/** Requests to cancel runs that execute in another process. */
export const runCancelStore = defineStore((storage) => {
  const open = ['Queued', 'Running'];
  return {
    /** The first to ask stands. */
    async ask(row: RunCancelRow): Promise<void> {
      await storage.db
        .insertInto('run_cancels')
        .values(row)
        .onConflict((conflict) => conflict.column('run_id').doNothing())
        .execute();
    },
    of: (runIds: readonly string[]): Promise<readonly RunCancelRow[]> =>
      storage.db.selectFrom('run_cancels').selectAll().where('run_id', 'in', runIds).execute(),
    async drop(runId: string): Promise<void> {
      await storage.db.deleteFrom('run_cancels').where('run_id', '=', runId).execute();
    },
    /** Forgets requests of before then whose runs are over. */
    async dropClosed(before: number): Promise<void> {
      await storage.db
        .deleteFrom('run_cancels')
        .where('requested_at', '<', before)
        .where('run_id', 'not in', storage.db.selectFrom('runs').select('id').where('status', 'in', open))
        .execute();
    },
  };
});

export type RunCancelStore = StoreOf<typeof runCancelStore>;
