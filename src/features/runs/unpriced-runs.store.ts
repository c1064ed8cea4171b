import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';

/** Closed runs of agents without a known cost. */
export interface UnpricedRuns {
  /** In the order of their ids, after one of them; at most `limit`. */
  next(tenantId: string, afterId: string, limit: number): Promise<readonly RunRow[]>;
}

export const createUnpricedRuns = (storage: Storage): UnpricedRuns => ({
  next: (tenantId, afterId, limit) =>
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
});
