import { isoTime } from '../../core/iso-time.ts';
import type { RunRow } from '../../db/tables.ts';
import {
  createQuotaReplay,
  type PastRun,
  type PastThreshold,
  type PastVerdict,
  type QuotaRule,
  replayStart,
  shownAmount,
} from '../quotas/index.ts';
import { cappedList } from './capped-list.ts';
import type { Gaps } from './gaps.ts';
import type { HistoryStore, TreeUse } from './history.store.ts';
import { createBreather, type HistoryScope, type PolicyOutcome, walkHistory } from './history-walk.ts';
import type { QuotaFindings } from './policy-tests.schema.ts';

export interface QuotaTestDeps {
  readonly store: HistoryStore;
  /** IANA name of the zone in which days begin. */
  readonly timeZone: string;
  readonly thresholdPercents: readonly number[];
}

const quotaOf = (rule: QuotaRule) => ({
  quotaAgentName: rule.agentName === '' ? null : rule.agentName,
  period: rule.period,
});

/** The order of their starts; ids are nearly that. */
const inOrder = (rows: readonly RunRow[]): RunRow[] =>
  [...rows].sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));

const pastRun = (row: RunRow, below: TreeUse | undefined): PastRun => ({
  id: row.id,
  agentName: row.agent_name,
  startedAt: row.created_at,
  endedAt: row.completed_at,
  tokens: (row.total_tokens ?? 0) + (below?.tokens ?? 0),
  costMicros: (row.total_cost_micros ?? 0) + (below?.costMicros ?? 0),
  counts: row.continued_from_run_id === null,
  mayWait: row.job_id === null,
});

/**
 * Lets the recorded root runs ask for admission again, from the period before the window on, so that counters are as full
 * as they would have been. A refused run uses nothing, nor do the runs that went on with its turn.
 */
export const testQuotas = async (
  { store, timeZone, thresholdPercents }: QuotaTestDeps,
  scope: HistoryScope,
  rules: readonly QuotaRule[],
  gaps: Gaps,
): Promise<PolicyOutcome<QuotaFindings>> => {
  const refusals = cappedList<QuotaFindings['refusals'][number]>(scope.take);
  const thresholds = cappedList<QuotaFindings['thresholds'][number]>(scope.take);
  const counts = { runs: 0, refused: 0, held: 0 };
  /** Refused runs that others go on with. */
  const refusedPauses = new Set<string>();

  const crossed = ({ rule, metric, periodStart, percent, at, runId }: PastThreshold): void => {
    if (at < scope.sinceMs || at >= scope.untilMs) return;
    thresholds.add({ ...quotaOf(rule), metric, periodStart, percent, at: isoTime(at), runId });
  };
  const replay = createQuotaReplay(rules, timeZone, thresholdPercents, crossed);

  const limitsCost = rules.some((rule) => rule.maxCostMicros !== null);
  const note = (row: RunRow): void => {
    counts.runs += 1;
    if (row.completed_at === null) gaps.add(row.id, 'Usage', 'RunOpen');
    else if (limitsCost && row.total_tokens !== null && row.total_cost_micros === null)
      gaps.add(row.id, 'Usage', 'NotStored');
  };

  const tell = (row: RunRow, { kind, limit: state }: Exclude<PastVerdict, { readonly kind: 'Admitted' }>): void => {
    counts[kind === 'Refused' ? 'refused' : 'held'] += 1;
    const { rule, metric, limit, used, resetsAt } = state;
    refusals.add({
      runId: row.id,
      agentName: row.agent_name,
      at: isoTime(row.created_at),
      outcome: kind,
      ...quotaOf(rule),
      metric,
      limit: shownAmount(metric, limit),
      used: shownAmount(metric, used),
      resetsAt: isoTime(resetsAt),
    });
  };

  const look = (row: RunRow, below: TreeUse | undefined): void => {
    const isCounted = row.created_at >= scope.sinceMs;
    if (isCounted) note(row);
    const before = row.continued_from_run_id;
    if (before !== null && refusedPauses.has(before)) {
      refusedPauses.add(row.id);
      return;
    }
    const verdict = replay.next(pastRun(row, below));
    if (verdict.kind === 'Admitted') return;
    if (verdict.kind === 'Refused' && row.status.startsWith('Awaiting')) refusedPauses.add(row.id);
    if (isCounted) tell(row, verdict);
  };

  const breathe = createBreather();
  const before = { ...scope, sinceMs: Math.min(scope.sinceMs, replayStart(rules, timeZone, scope.sinceMs)) };
  for await (const rows of walkHistory(store, before, { rootsOnly: true })) {
    const parents = rows.flatMap((row) => (row.child_run_count > 0 ? [row.id] : []));
    const below = parents.length === 0 ? null : await store.treeUse(scope.tenantId, parents);
    for (const row of inOrder(rows)) {
      look(row, below?.get(row.id));
      await breathe();
    }
  }
  replay.advance(scope.untilMs);
  return {
    runsExamined: counts.runs,
    matches: counts.refused,
    findings: {
      timeZone,
      refused: counts.refused,
      held: counts.held,
      refusals: [...refusals.items],
      refusalsOmitted: refusals.omitted,
      thresholds: [...thresholds.items],
      thresholdsOmitted: thresholds.omitted,
    },
  };
};
