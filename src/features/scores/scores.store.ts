import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { RunScoreRow } from '../../db/tables.ts';

export const scoreStore = defineStore((storage) => {
  const scores = (tenantId: string, runId: string) =>
    storage.db.selectFrom('run_scores').selectAll().where('tenant_id', '=', tenantId).where('run_id', '=', runId);
  const saved = (rows: readonly RunScoreRow[]) =>
    storage.db
      .insertInto('run_scores')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['tenant_id', 'run_id', 'message_id', 'name', 'author']).doUpdateSet((eb) => ({
          kind: eb.ref('excluded.kind'),
          value: eb.ref('excluded.value'),
          text_value: eb.ref('excluded.text_value'),
          comment: eb.ref('excluded.comment'),
          source: eb.ref('excluded.source'),
          evaluator_version: eb.ref('excluded.evaluator_version'),
          created_at: eb.ref('excluded.created_at'),
        })),
      )
      .returningAll();
  return {
    /** Writes the score, or replaces the one of the same run, message, name and author, whose id stays. */
    save: (row: RunScoreRow): Promise<RunScoreRow> => saved([row]).executeTakeFirstOrThrow(),
    /** The same for several, all or none; in no order. */
    saveAll: (rows: readonly RunScoreRow[]): Promise<readonly RunScoreRow[]> => saved(rows).execute(),
    list: (tenantId: string, runId: string): Promise<readonly RunScoreRow[]> =>
      scores(tenantId, runId).orderBy('created_at', 'desc').orderBy('id', 'desc').execute(),
    get: (tenantId: string, runId: string, scoreId: string): Promise<RunScoreRow | undefined> =>
      scores(tenantId, runId).where('id', '=', scoreId).executeTakeFirst(),
    /** False: it was gone already. */
    remove: (tenantId: string, runId: string, scoreId: string) =>
      deletesRow(
        storage.db
          .deleteFrom('run_scores')
          .where('tenant_id', '=', tenantId)
          .where('run_id', '=', runId)
          .where('id', '=', scoreId),
      ),
  };
});

export type ScoreStore = StoreOf<typeof scoreStore>;
