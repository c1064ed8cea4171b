import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { updateStatement } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';

/** What a run costs, and its sum. */
export interface RunCost {
  readonly run: Pick<RunRow, 'tenant_id' | 'id'>;
  readonly cost: string | null;
  readonly totalMicros: number | null;
  /** StoredShare[] as JSON. */
  readonly shares: string | null;
}

/** Closed runs of agents without a known cost. */
export const unpricedRuns = defineStore((storage) => {
  const priced = updateStatement(
    storage.db,
    'runs',
    ({ run: { tenant_id, id }, cost, totalMicros, shares }: RunCost) => ({
      set: { cost, total_cost_micros: totalMicros, model_shares: shares, cost_recalculated: 1 },
      where: { tenant_id, id },
    }),
  );
  return {
    /** All of them, or none. */
    price: (costs: readonly RunCost[]): Promise<void> => storage.write(costs.map((cost) => priced(cost))),
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
  };
});

export type UnpricedRuns = StoreOf<typeof unpricedRuns>;
