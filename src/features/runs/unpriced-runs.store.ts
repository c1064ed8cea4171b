import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { updateStatement } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';

/** Closed runs of agents without a known cost. */
export const unpricedRuns = defineStore((storage) => ({
  priced: updateStatement(
    storage.db,
    'runs',
    ({ tenant_id, id }: Pick<RunRow, 'tenant_id' | 'id'>, cost: string | null, totalCostMicros: number | null) => ({
      set: { cost, total_cost_micros: totalCostMicros, cost_recalculated: 1 },
      where: { tenant_id, id },
    }),
  ),
  /** In the order of their ids, after one of them; at most `limit`. */
  next: (tenantId: string, afterId: string, limit: number): Promise<readonly RunRow[]> =>
    storage.scan(
      storage.db
        .selectFrom('runs')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('completed_at', 'is not', null)
        .where('total_cost_micros', 'is', null)
        .where('id', '>', afterId)
        .orderBy('id')
        .limit(limit),
    ),
}));

export type UnpricedRuns = StoreOf<typeof unpricedRuns>;
