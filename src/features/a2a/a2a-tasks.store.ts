import { type ExpressionBuilder, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { RunRow, Tables } from '../../db/tables.ts';
import type { PageEnd } from './task-list.rules.ts';

export interface TaskFilter {
  readonly agentName: string;
  /** The caller behind its door. */
  readonly door: string;
  readonly contextId: string | null;
  readonly state: { readonly status: string; readonly rejected: boolean | null } | null;
  /** Only tasks that changed after it, in epoch milliseconds. */
  readonly changedAfter: number | null;
}

/** As `changedAt` of one row. */
const changed = sql<number>`coalesce(completed_at, started_at, created_at)`;

const usage = ['input_tokens', 'output_tokens', 'total_tokens'] as const;

/** As `stateOf` of one row. */
const isRejected = (eb: ExpressionBuilder<Tables, 'runs'>) =>
  eb.and([eb('error_class', '=', 'ContentBlocked'), ...usage.map((column) => eb(column, 'is', null))]);

/** Tasks of a caller, which are the root runs that it has started. */
export const a2aTaskStore = defineStore((storage) => {
  const matching = (tenantId: string, filter: TaskFilter) => {
    const { agentName, door, contextId, state, changedAfter } = filter;
    let rows = storage.db
      .selectFrom('runs')
      .where('tenant_id', '=', tenantId)
      .where('door', '=', door)
      .where('agent_name', '=', agentName);
    if (contextId !== null) rows = rows.where('session_id', '=', contextId);
    if (changedAfter !== null) rows = rows.where(changed, '>', changedAfter);
    if (state === null) return rows;
    rows = rows.where('status', '=', state.status);
    if (state.rejected === null) return rows;
    return rows.where((eb) =>
      state.rejected === true
        ? isRejected(eb)
        : eb.or([eb('error_class', 'is', null), eb('error_class', '<>', 'ContentBlocked'), eb.not(isRejected(eb))]),
    );
  };
  return {
    /** Most recently changed first; at most `take`, after the end of an earlier page. */
    list(tenantId: string, filter: TaskFilter, after: PageEnd | null, take: number): Promise<readonly RunRow[]> {
      let rows = matching(tenantId, filter).selectAll();
      if (after !== null)
        rows = rows.where((eb) =>
          eb.or([
            eb(changed, '<', after.changedAt),
            eb.and([eb(changed, '=', after.changedAt), eb('id', '<', after.id)]),
          ]),
        );
      return rows.orderBy(changed, 'desc').orderBy('id', 'desc').limit(take).execute();
    },
    async count(tenantId: string, filter: TaskFilter): Promise<number> {
      const row = await matching(tenantId, filter)
        .select((eb) => eb.fn.countAll<number | string>().as('count'))
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
  };
});

export type A2ATaskStore = StoreOf<typeof a2aTaskStore>;
