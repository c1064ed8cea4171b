import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { askedCall } from '../../db/tables.ts';

/** How the recorded calls of each tool went. */
export const toolUsageStore = defineStore((storage) => ({
  /** Most called first, at most `limit`; calls that settled, counted from a moment on when one is given. */
  byTool(tenantId: string, settledAfterMs: number | null, limit: number) {
    const { db } = storage;
    let calls = db
      .selectFrom('tool_invocations')
      .where('tenant_id', '=', tenantId)
      .where('state', '=', 'Settled')
      // What is made with the answer is the same call.
      .where('called', '<>', askedCall);
    if (settledAfterMs !== null) calls = calls.where('created_at', '>', settledAfterMs);
    return storage.history(
      calls
        .select((eb) => [
          'tool_name',
          eb.fn.countAll<string | number>().as('total'),
          eb.fn.sum<string | number>('succeeded').as('succeeded'),
          eb.fn.avg<string | number | null>('duration_ms').as('duration'),
          eb.fn.max('created_at').as('last'),
        ])
        .groupBy('tool_name')
        .orderBy('total', 'desc')
        .orderBy('tool_name')
        .limit(limit),
    );
  },
}));

export type ToolUsageStore = StoreOf<typeof toolUsageStore>;
