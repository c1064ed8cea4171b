import { type RawBuilder, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { boundText, type Statement } from '../../db/statement.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { QuotaUse } from '../../engine/control/index.ts';
import type { CountedRoot, OpenRuns } from './counted-roots.ts';
import { boundTexts } from './quotas.store.ts';

/** Places of runs that are admitted and not in the store, of all processes. */
export interface HeldPlaces {
  readonly agentName: string;
  /** Local day of the admissions, in which the runs will count. */
  readonly day: string;
  readonly count: number;
  /** Those of them whose calls have no price. */
  readonly unpriced: number;
}

/** What calls of all processes hold, and what is used that no counter has. */
export interface HeldUse {
  readonly root: CountedRoot;
  readonly held: QuotaUse;
  readonly spent: QuotaUse;
}

export interface StandingPlaces {
  readonly counters: readonly QuotaUsageRow[];
  readonly places: readonly HeldPlaces[];
  /** Root runs in the store that have not ended. */
  readonly open: readonly OpenRuns[];
}

export interface StandingCalls {
  readonly counters: readonly QuotaUsageRow[];
  readonly calls: readonly HeldUse[];
}

/** A read that is sent with others, and what its rows say. */
export interface Reading<T> extends Statement {
  of(rows: readonly unknown[]): T;
}

/** All parts have these columns; what they mean depends on the kind. */
interface StandingRow extends QuotaUsageRow {
  readonly kind: 'counter' | 'place' | 'open' | 'call';
}

// By how many periods, names and runs are asked for; more than that are rare.
const mostTexts = 200;

/** So that few texts serve any number: the last value again and again. */
const padded = (values: readonly string[]): readonly string[] => {
  const length = values.length === 0 ? 1 : 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...Array.from({ length: length - values.length }, () => values.at(-1) ?? '')];
};

const rowsOf = (rows: readonly unknown[], kind: StandingRow['kind']): readonly StandingRow[] =>
  (rows as readonly StandingRow[]).filter((row) => row.kind === kind);

const countersOf = (rows: readonly unknown[], tenantId: string): readonly QuotaUsageRow[] =>
  rowsOf(rows, 'counter').map(({ kind: _kind, ...row }) => ({ ...row, tenant_id: tenantId }));

const unbounded = (amount: number, without: number): number => (without > 0 ? Number.POSITIVE_INFINITY : amount);

/**
 * What stands against the quotas of a tenant, of all processes, each kind in one statement: a run goes from its hold to the
 * counters in one transaction, so it is in one of them, whatever happens beside the read.
 */
export const standingStore = defineStore((storage) => {
  const texts = new Map<string, string>();
  const compiled = (key: string, query: () => RawBuilder<unknown>): string => {
    const before = texts.get(key);
    if (before !== undefined) return before;
    const { sql: text } = query().compile(storage.db);
    if (texts.size < mostTexts) texts.set(key, text);
    return text;
  };
  const counters = (starts: number, names: number) => sql`select 'counter' as kind, agent_name, period, period_start,
      runs, tokens, cost_micros, most_tokens, most_cost_micros, updated_at
    from ${sql.table('quota_usage')}
    where tenant_id = ${boundText} and period_start in ${boundTexts(starts)} and agent_name in ${boundTexts(names)}`;
  const placesText = (starts: number, names: number, lost: number) => sql`${counters(starts, names)}
    union all
    select 'place', agent_name, '', quota_day, count(*),
      sum(case when held_cost_micros = 0 then 1 else 0 end), 0, 0, 0, 0
    from ${sql.table('quota_holds')} where tenant_id = ${boundText} and is_admission = 1 and run_id not in ${boundTexts(lost)}
    group by agent_name, quota_day`;
  const openText = (starts: number, names: number, lost: number) => sql`${placesText(starts, names, lost)}
    union all
    select 'open', agent_name, '', '', count(*), 0, 0, 0, 0, 0
    from ${sql.table('runs')}
    where status in ('Queued', 'Running') and tenant_id = ${boundText} and parent_run_id is null
    group by agent_name`;
  const callsText = (starts: number, names: number, runs: number) => sql`${counters(starts, names)}
    union all
    select 'call', agent_name, '', quota_day,
      sum(case when held_tokens is null then 1 else 0 end), sum(spent_tokens), sum(spent_cost_micros),
      sum(coalesce(held_tokens, 0)), sum(coalesce(held_cost_micros, 0)),
      sum(case when held_cost_micros is null then 1 else 0 end)
    from ${sql.table('quota_holds')}
    where tenant_id = ${boundText} and is_admission = 0 and run_id not in ${boundTexts(runs)}
    group by agent_name, quota_day`;

  return {
    /**
     * `limitsUse`: a limit of tokens or cost is among the rules, so that what runs in progress may use matters. Without the
     * places of `lostRuns`, which nobody has.
     */
    places(
      tenantId: string,
      starts: readonly string[],
      agentNames: readonly string[],
      limitsUse: boolean,
      lostRuns: readonly string[],
    ): Reading<StandingPlaces> {
      const [some, names, lost] = [padded(starts), padded(agentNames), padded(lostRuns)];
      const key = `places ${limitsUse} ${some.length} ${names.length} ${lost.length}`;
      const text = limitsUse ? openText : placesText;
      return {
        sql: compiled(key, () => text(some.length, names.length, lost.length)),
        parameters: [tenantId, ...some, ...names, tenantId, ...lost, ...(limitsUse ? [tenantId] : [])],
        of: (rows) => ({
          counters: countersOf(rows, tenantId),
          places: rowsOf(rows, 'place').map((row) => ({
            agentName: row.agent_name,
            day: row.period_start,
            count: row.runs,
            unpriced: row.tokens,
          })),
          open: rowsOf(rows, 'open').map((row) => ({ agentName: row.agent_name, count: row.runs })),
        }),
      };
    },
    /** Without what the named runs hold and have used: they are asking for something else. */
    calls(
      tenantId: string,
      starts: readonly string[],
      agentNames: readonly string[],
      runIds: readonly string[],
    ): Reading<StandingCalls> {
      const [some, names, runs] = [padded(starts), padded(agentNames), padded(runIds)];
      const key = `calls ${some.length} ${names.length} ${runs.length}`;
      return {
        sql: compiled(key, () => callsText(some.length, names.length, runs.length)),
        parameters: [tenantId, ...some, ...names, tenantId, ...runs],
        of: (rows) => ({
          counters: countersOf(rows, tenantId),
          calls: rowsOf(rows, 'call').map((row) => ({
            root: { tenantId, agentName: row.agent_name, day: row.period_start },
            spent: { tokens: row.tokens, costMicros: row.cost_micros },
            held: {
              tokens: unbounded(row.most_tokens, row.runs),
              costMicros: unbounded(row.most_cost_micros, row.updated_at),
            },
          })),
        }),
      };
    },
  };
});

export type Standing = StoreOf<typeof standingStore>;
