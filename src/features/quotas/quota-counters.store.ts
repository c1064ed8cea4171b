import { sql } from 'kysely';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { boundText, type Statement } from '../../db/statement.ts';
import type { QuotaUse } from '../../engine/control/index.ts';
import { type CountedRoot, CountedRoots } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { Booking, condensed, orderlyCondensed, Settlement, withNotices } from './quota-bookings.ts';
import type { RunHolds } from './quota-keeping.ts';
import type { OpenedRootRun, QuotaNotices } from './quota-notices.store.ts';
import { noUse } from './quota-use.ts';

export interface ClosedRunUse {
  readonly id: string;
  readonly tenantId: string;
  readonly rootRunId: string | null;
  readonly use: QuotaUse;
  /** What the whole tree has used, once its root ends. */
  readonly tree: QuotaUse | null;
}

// More runs than one process has open at a time; what it forgets is read from the root's row.
const maxOpenRoots = 10_000;

const isUsed = (use: QuotaUse | null): boolean => use !== null && (use.tokens !== 0 || use.costMicros !== 0);

/** The statements that count a run, for the transactions that write its row. */
export const createRunCounters = (
  clock: PeriodClock,
  notices: QuotaNotices,
  holds: Pick<RunHolds, 'admitted' | 'settled' | 'dayOf'>,
  now: () => number,
  batch: Pick<BatchedWrites, 'condenseBy'>,
  isShared = false,
) =>
  defineStore((storage) => {
    const usage = sql.table('quota_usage');
    // Qualified, since the new row has the same columns.
    const plus = (column: string) => sql`${sql.ref(`quota_usage.${column}`)} + excluded.${sql.ref(column)}`;
    const larger = (column: string) => {
      const [before, after] = [sql.ref(`quota_usage.${column}`), sql`excluded.${sql.ref(column)}`];
      return sql`case when ${after} > ${before} then ${after} else ${before} end`;
    };
    const conflict = sql`on conflict (tenant_id, agent_name, period, period_start) do update set`;

    const rise = sql`tokens = ${plus('tokens')}, cost_micros = ${plus('cost_micros')},
    most_tokens = ${larger('most_tokens')}, most_cost_micros = ${larger('most_cost_micros')},
    updated_at = excluded.updated_at`;
    const row = sql`(${''}, ${''}, ${''}, ${''}, ${0}, ${0}, ${0}, ${0}, ${0}, ${0})`;
    const texts = new Map<number, string>();
    const added = (counters: number): string =>
      sql`insert into ${usage}
    (tenant_id, agent_name, period, period_start, runs, tokens, cost_micros, most_tokens, most_cost_micros, updated_at)
    values ${sql.join(Array.from({ length: counters }, () => row))}
    ${conflict} runs = ${plus('runs')}, ${rise}`.compile(storage.db).sql;
    const addText = (counters: number): string => texts.getOrInsertComputed(counters, added);

    batch.condenseBy(isShared ? orderlyCondensed : condensed);
    const roots = new CountedRoots();

    const add = (root: CountedRoot, runs: number, use: QuotaUse, most: QuotaUse): Booking =>
      new Booking(addText, root, {
        runs,
        tokens: use.tokens,
        costMicros: use.costMicros,
        mostTokens: most.tokens,
        mostCostMicros: most.costMicros,
        at: now(),
      });

    // The root's row says where one counts that was admitted before a restart. Reading it costs several times what the
    // counters do, so where the roots of this process count is kept in memory.
    const amount = sql`cast(${0} as bigint)`;
    const { sql: settleSql } = sql`insert into ${usage}
    (tenant_id, agent_name, period, period_start, tokens, cost_micros, most_tokens, most_cost_micros, updated_at)
    select root.tenant_id,
      case scope.of_agent when 1 then root.agent_name else '' end,
      case scope.of_month when 1 then 'Monthly' else 'Daily' end,
      case scope.of_month when 1 then substr(root.quota_day, 1, 8) || '01' else root.quota_day end,
      ${amount}, ${amount}, ${amount}, ${amount}, ${amount}
    from ${sql.table('runs')} as root
    cross join (select 0 as of_agent, 0 as of_month union all select 0, 1 union all select 1, 0 union all select 1, 1)
      as scope
    where root.tenant_id = ${boundText} and root.id = ${boundText} and root.quota_day is not null
    order by scope.of_agent, scope.of_month
    ${conflict} ${rise}`.compile(storage.db);

    const openRoots = new Map<string, CountedRoot>();

    const remember = (root: CountedRoot & { readonly id: string }): CountedRoot => {
      if (openRoots.size >= maxOpenRoots) openRoots.delete(openRoots.keys().next().value ?? '');
      const counted = roots.of(root);
      openRoots.set(root.id, counted);
      return counted;
    };

    const opened = (root: OpenedRootRun): Statement => add(remember(root), root.counts ? 1 : 0, noUse, noUse);

    const settled = ({ id, tenantId, rootRunId, tree, use }: ClosedRunUse): Statement => {
      const rootId = rootRunId ?? id;
      const root = openRoots.get(rootId);
      const most = tree ?? noUse;
      if (root?.tenantId === tenantId) return add(root, 0, use, most);
      const parameters = [use.tokens, use.costMicros, most.tokens, most.costMicros, now(), tenantId, rootId];
      return new Settlement(settleSql, parameters, tenantId);
    };

    return {
      /** Local day that a run counts in: that of its admission where processes compare days, else that of this moment. */
      day: (runId: string): string => holds.dayOf(runId) ?? clock.current().day,
      /** Where a root counts that another process has opened. */
      adopt(root: Pick<OpenedRootRun, 'id' | 'tenantId' | 'agentName' | 'day'>): void {
        if (openRoots.get(root.id) === undefined) remember(root);
      },
      /** Where a root counts that has been opened here and is not closed. */
      rootOf(tenantId: string, rootId: string): CountedRoot | undefined {
        const root = openRoots.get(rootId);
        return root?.tenantId === tenantId ? root : undefined;
      },
      /** For a run that has a row and counts nowhere: takes the place of its admission away, if it had one. */
      uncounted: (runId: string): readonly Statement[] => holds.admitted(runId),
      opened: (run: OpenedRootRun): readonly Statement[] => [
        ...withNotices(opened(run), notices.crossed(run.tenantId, run.id)),
        ...holds.admitted(run.id),
      ],
      /** The same for a run that has no row: in a transaction of its own. */
      openedUnrecorded: (run: OpenedRootRun): readonly Statement[] => [
        ...withNotices(add(roots.of(run), run.counts ? 1 : 0, noUse, noUse), notices.crossedBy(run)),
        ...holds.admitted(run.id),
      ],
      /** Adds what one run of a tree has used to the periods in which its root was admitted. */
      closed(run: ClosedRunUse): readonly Statement[] {
        const { id, tenantId, rootRunId, tree } = run;
        const isBooked = isUsed(run.use) || isUsed(tree);
        const statements = isBooked ? withNotices(settled(run), notices.crossed(tenantId, rootRunId ?? id)) : [];
        if (rootRunId === null || rootRunId === id) openRoots.delete(id);
        return [...statements, ...holds.settled(id)];
      },
      /** Both at once, for a run that was over before it could be counted. */
      booked: (root: OpenedRootRun, use: QuotaUse): readonly Statement[] =>
        withNotices(add(roots.of(root), root.counts ? 1 : 0, use, use), notices.crossedBy(root)),
      closedUnrecorded: (root: OpenedRootRun, use: QuotaUse): readonly Statement[] =>
        isUsed(use) ? withNotices(add(roots.of(root), 0, use, noUse), notices.crossedBy(root)) : [],
    };
  });

export type RunCounters = StoreOf<ReturnType<typeof createRunCounters>>;
