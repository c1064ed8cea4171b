import { sql } from 'kysely';
import { isoTime } from '../../core/iso-time.ts';
import { defineStore, type StoreHandle } from '../../db/define-store.ts';
import { erasedRunsMark } from '../../db/tables/retention.ts';
import { shownAmount } from './quotas.rules.ts';
import type { QuotaDifference, QuotaPeriod } from './quotas.schema.ts';

export interface QuotaComparison {
  readonly matches: boolean;
  readonly countersChecked: number;
  readonly runsChecked: number;
  readonly differences: QuotaDifference[];
}

/** Sums the recorded runs of a tenant again and compares them with its counters, of all periods. */
export type QuotaVerifier = (tenantId: string) => Promise<QuotaComparison>;

interface SumRow {
  readonly source: 'counter' | 'record';
  readonly agent_name: string;
  /** Empty for records: their day counts in both periods. */
  readonly period: string;
  readonly start: string;
  readonly runs: number | string;
  readonly tokens: number | string;
  readonly cost_micros: number | string;
}

interface Sums {
  runs: number;
  tokens: number;
  costMicros: number;
}

interface Pair {
  readonly agentName: string;
  readonly period: QuotaPeriod;
  readonly periodStart: string;
  readonly counted: Sums;
  readonly recorded: Sums;
}

const shown = ({ runs, tokens, costMicros }: Sums) => ({ runs, tokens, cost: shownAmount('Cost', costMicros) });

const same = (a: Sums, b: Sums): boolean => a.runs === b.runs && a.tokens === b.tokens && a.costMicros === b.costMicros;

/** Counters and records side by side. */
const pairs = (rows: readonly SumRow[]): Pair[] => {
  const pairOf = new Map<string, Pair>();
  const add = (row: SumRow, side: 'counted' | 'recorded', agentName: string, period: string, start: string): void => {
    const key = JSON.stringify([agentName, period, start]);
    const pair = pairOf.get(key) ?? {
      agentName,
      period: period as QuotaPeriod,
      periodStart: start,
      counted: { runs: 0, tokens: 0, costMicros: 0 },
      recorded: { runs: 0, tokens: 0, costMicros: 0 },
    };
    pairOf.set(key, pair);
    pair[side].runs += Number(row.runs);
    pair[side].tokens += Number(row.tokens);
    pair[side].costMicros += Number(row.cost_micros);
  };
  for (const row of rows)
    if (row.source === 'counter') add(row, 'counted', row.agent_name, row.period, row.start);
    else
      for (const agentName of ['', row.agent_name]) {
        add(row, 'recorded', agentName, 'Daily', row.start);
        add(row, 'recorded', agentName, 'Monthly', `${row.start.slice(0, 7)}-01`);
      }
  return [...pairOf.values()];
};

/** A sum that deleted runs are missing from is the smaller one. */
const isShort = (counted: Sums, recorded: Sums): boolean =>
  recorded.runs <= counted.runs && recorded.tokens <= counted.tokens && recorded.costMicros <= counted.costMicros;

// No zone is further ahead of UTC, in which the marks are: a day there begins so long before.
const furthestZoneMs = 14 * 3_600_000;

/** The last local day of which runs were deleted; empty: none ever were. */
const deletedUntil = async (storage: StoreHandle, tenantId: string): Promise<string> => {
  const marks = await storage.db
    .selectFrom('retention_marks')
    .select('swept_until')
    .where('tenant_id', '=', tenantId)
    .where('target', 'in', ['Runs', erasedRunsMark])
    .execute();
  return marks.length === 0
    ? ''
    : isoTime(Math.max(...marks.map((mark) => mark.swept_until)) + furthestZoneMs).slice(0, 10);
};

export const quotaVerifier = defineStore(
  (storage): QuotaVerifier =>
    async (tenantId) => {
      // One statement, so that both sides are of the same moment; the whole history of runs is read beside the event loop.
      const query = sql<SumRow>`
      select 'counter' as source, agent_name, period, period_start as start, runs, tokens, cost_micros
      from ${sql.table('quota_usage')} where tenant_id = ${tenantId}
      union all
      select 'record', root.agent_name, '', root.quota_day,
        sum(case when run.id = root.id and root.continued_from_run_id is null then 1 else 0 end),
        sum(coalesce(run.total_tokens, 0)),
        sum(case when run.cost_recalculated is null then coalesce(run.total_cost_micros, 0) else 0 end)
      from ${sql.table('runs')} as run
      join ${sql.table('runs')} as root on root.tenant_id = run.tenant_id and root.id = coalesce(run.root_run_id, run.id)
      where run.tenant_id = ${tenantId} and root.quota_day is not null
      group by root.agent_name, root.quota_day`;
      const rows = await storage.scan<SumRow>({ compile: () => query.compile(storage.db) });
      // After the sums: a mark is written before the first run of its time is deleted.
      const lastDay = await deletedUntil(storage, tenantId);
      const differences = pairs(rows)
        .filter(({ counted, recorded }) => !same(counted, recorded))
        .map((pair) => ({
          ...pair,
          counted: shown(pair.counted),
          recorded: shown(pair.recorded),
          runsDeleted: pair.periodStart <= lastDay && isShort(pair.counted, pair.recorded),
        }));
      return {
        matches: differences.length === 0,
        countersChecked: rows.filter((row) => row.source === 'counter').length,
        runsChecked: rows.reduce((sum, row) => sum + (row.source === 'record' ? Number(row.runs) : 0), 0),
        differences,
      };
    },
);
