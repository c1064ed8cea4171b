import { type ExpressionBuilder, type RawBuilder, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { boundText, type Statement } from '../../db/statement.ts';
import type { QuotaNoticeRow } from '../../db/tables/quotas.ts';
import type { Tables } from '../../db/tables.ts';
import type { PeriodClock } from './period-clock.ts';
import type { QuotaRules } from './quotas.store.ts';

/** A root run as it is first stored. */
export interface OpenedRootRun {
  readonly id: string;
  readonly tenantId: string;
  readonly agentName: string;
  /** Local day of the admission. */
  readonly day: string;
  /** False for a run that goes on with another one's turn: only its use counts. */
  readonly counts: boolean;
}

// More than one run can cross; the rest is asked for again.
const perPage = 200;
// A process needs milliseconds to pass a page on, unless it stands still or is gone.
const claimMs = 30_000;

/** `percents` are sorted; without any there are no notices. `isShared`: other processes pass on what they find, too. */
export const createQuotaNotices = (
  rules: Pick<QuotaRules, 'known'>,
  clock: PeriodClock,
  percents: readonly number[],
  now: () => number,
  isShared = false,
) =>
  defineStore((storage) => {
    const percentRows = sql.join(
      percents.map((percent) => sql`select ${sql.lit(percent)} as threshold`),
      sql` union all `,
    );
    // A closed period gives no notice any more, so the counter must be the current one as well as the run's.
    const crossedBy = (root: RawBuilder<unknown>) =>
      sql`insert into ${sql.table('quota_notices')}
    (id, tenant_id, quota_id, agent_name, metric, period, period_start, threshold_percent, limit_value, used_value,
     run_id, created_at)
    select quota_id || ':' || metric || ':' || limit_value || ':' || period_start || ':' || threshold,
      tenant_id, quota_id, agent_name, metric, period, period_start, threshold, limit_value, used_value, root_id, cast(${0} as bigint)
    from (
      select rule.id as quota_id, rule.tenant_id, rule.agent_name, rule.period, counter.period_start,
        root.id as root_id, kind.metric,
        case kind.metric when 'Runs' then rule.max_runs when 'Tokens' then rule.max_tokens
          else rule.max_cost_micros end as limit_value,
        case kind.metric when 'Runs' then counter.runs when 'Tokens' then counter.tokens + ${0}
          else counter.cost_micros + ${0} end as used_value
      from ${root} as root
      join ${sql.table('quotas')} as rule
        on rule.tenant_id = root.tenant_id and rule.agent_name in ('', root.agent_name) and rule.enabled = 1
      join ${sql.table('quota_usage')} as counter
        on counter.tenant_id = rule.tenant_id and counter.agent_name = rule.agent_name
        and counter.period = rule.period
        and counter.period_start = case rule.period when 'Daily' then root.quota_day
          else substr(root.quota_day, 1, 8) || '01' end
      cross join (select 'Runs' as metric union all select 'Tokens' union all select 'Cost') as kind
      where root.tenant_id = ${boundText} and root.id = ${boundText}
        and counter.period_start = case rule.period when 'Daily' then ${boundText} else ${boundText} end
    ) as booked
    cross join (${percentRows}) as share
    where limit_value > 0 and used_value * 100 >= limit_value * threshold
    on conflict (id) do nothing`.compile(storage.db).sql;
    // Compiled once, and only where there is something to ask for.
    const texts =
      percents.length === 0
        ? null
        : {
            recorded: crossedBy(sql.table('runs')),
            unrecorded: crossedBy(
              sql`(select ${boundText} as id, ${boundText} as tenant_id, ${boundText} as agent_name, ${boundText} as quota_day)`,
            ),
          };

    const unannounced = (tenantId: string | null) => {
      const query = storage.db.selectFrom('quota_notices').where('announced_at', 'is', null);
      return (tenantId === null ? query : query.where('tenant_id', '=', tenantId)).limit(perPage);
    };

    /** Each is up to one process; what that one does not pass on in time is found again. */
    const claimed = (tenantId: string | null): Promise<readonly QuotaNoticeRow[]> => {
      const at = now();
      const isFree = (eb: ExpressionBuilder<Tables, 'quota_notices'>) =>
        eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<', at)]);
      return (
        storage.db
          .updateTable('quota_notices')
          .set({ claimed_until: at + claimMs })
          .where('id', 'in', unannounced(tenantId).select('id').where(isFree).orderBy('id'))
          .where('announced_at', 'is', null)
          // Again: another process may have claimed it while this one waited for the row.
          .where(isFree)
          .returningAll()
          .execute()
      );
    };

    /** Rules that are not known may be there. */
    const mayCross = (tenantId: string): boolean => rules.known(tenantId)?.some((rule) => rule.enabled) ?? true;

    const crossed = (tenantId: string, rootRunId: string, tokens: number, costMicros: number): readonly Statement[] => {
      if (texts === null || !mayCross(tenantId)) return [];
      const { day, month } = clock.current();
      const parameters = [now(), tokens, costMicros, tenantId, rootRunId, day, month];
      return [{ sql: texts.recorded, parameters, isShared: true, isRepeatable: true }];
    };

    return {
      /** For the transaction that books: writes what the counters of the run's root have crossed by then. */
      crossed: (tenantId: string, rootRunId: string): readonly Statement[] => crossed(tenantId, rootRunId, 0, 0),
      /** The same for a run that has no row. */
      crossedBy({
        id,
        tenantId,
        agentName,
        day: counted,
      }: Pick<OpenedRootRun, 'id' | 'tenantId' | 'agentName' | 'day'>): readonly Statement[] {
        if (texts === null || !mayCross(tenantId)) return [];
        const { day, month } = clock.current();
        const root = [id, tenantId, agentName, counted];
        return [{ sql: texts.unrecorded, parameters: [now(), 0, 0, ...root, tenantId, id, day, month] }];
      },
      /** What they will have crossed once the use of a run is booked, too. */
      foretold: (
        tenantId: string,
        rootRunId: string,
        { tokens, costMicros }: { tokens: number; costMicros: number },
      ): readonly Statement[] => crossed(tenantId, rootRunId, tokens, costMicros),
      ofRun: (rootRunId: string): Promise<readonly QuotaNoticeRow[]> =>
        storage.db.selectFrom('quota_notices').selectAll().where('run_id', '=', rootRunId).orderBy('id').execute(),
      /** What nobody has passed on yet, and nobody else does for now; of one tenant, or of all. */
      waiting: (tenantId: string | null): Promise<readonly QuotaNoticeRow[]> =>
        isShared ? claimed(tenantId) : unannounced(tenantId).selectAll().execute(),
      /** Marks what is passed on in the same unit; those that nobody had passed on before. */
      async announced(ids: readonly string[]): Promise<ReadonlySet<string>> {
        const marked = await storage.db
          .updateTable('quota_notices')
          .set({ announced_at: now() })
          .where('id', 'in', ids)
          .where('announced_at', 'is', null)
          .returning('id')
          .execute();
        return new Set(marked.map(({ id }) => id));
      },
    };
  });

/** Thresholds that were crossed: one row each, whoever comes upon it. */
export type QuotaNotices = StoreOf<ReturnType<typeof createQuotaNotices>>;
