import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import { type CurrentPeriods, createPeriodClock } from './period-clock.ts';
import { appliesTo, judge, type LimitState, reportedLimit } from './quotas.rules.ts';
import type { QuotaMetric } from './quotas.schema.ts';
import type { QuotaRule } from './quotas.store.ts';

/** A root run as it was recorded, with what its whole tree used. Times are epoch milliseconds. */
export interface PastRun {
  readonly id: string;
  readonly agentName: string;
  readonly startedAt: number;
  /** Null: it is still open. */
  readonly endedAt: number | null;
  readonly tokens: number;
  readonly costMicros: number;
  /** False for a run that goes on with another one's turn: it is never refused, and only its use counts. */
  readonly counts: boolean;
  /** False: it would have got an answer at once rather than a place later. */
  readonly mayWait: boolean;
}

export interface PastThreshold {
  readonly rule: QuotaRule;
  readonly metric: QuotaMetric;
  readonly periodStart: string;
  readonly percent: number;
  readonly at: number;
  readonly runId: string;
}

export type PastVerdict =
  | { readonly kind: 'Admitted' }
  /** Held: others in progress would have had to end first. */
  | { readonly kind: 'Refused' | 'Held'; readonly limit: LimitState };

type Counter = { -readonly [K in keyof QuotaUsageRow]: QuotaUsageRow[K] };

interface Booked {
  readonly run: PastRun;
  readonly periods: CurrentPeriods;
}

/** The moment from which runs say how full the periods of a moment were, and how much runs used before. */
export const replayStart = (rules: readonly QuotaRule[], timeZone: string, since: number): number => {
  const { previousDay, previousMonth } = createPeriodClock(timeZone, () => since).current();
  const from = rules.some((rule) => rule.period === 'Monthly') ? previousMonth : previousDay;
  return Temporal.PlainDate.from(from).toZonedDateTime({ timeZone }).startOfDay().epochMilliseconds;
};

/** Decides about past runs one after another as the admission of the service would have, with counters of its own. */
export const createQuotaReplay = (
  rules: readonly QuotaRule[],
  timeZone: string,
  percents: readonly number[],
  crossed: (threshold: PastThreshold) => void,
) => {
  let at = 0;
  const clock = createPeriodClock(timeZone, () => at);
  const counters = new Map<string, Counter>();
  const open = new Map<string, number>();
  const announced = new Set<string>();
  /** Ordered by their ends, the next one last. */
  const running: Booked[] = [];

  const keyOf = (rule: QuotaRule, start: string): string => `${rule.agentName}\n${rule.period}\n${start}`;
  const startOf = (rule: QuotaRule, { day, month }: CurrentPeriods): string => (rule.period === 'Daily' ? day : month);

  /** Periods before the last ones say nothing any more. */
  const forget = (now: CurrentPeriods): void => {
    for (const [key, { period, period_start: start }] of counters)
      if (start < (period === 'Daily' ? now.previousDay : now.previousMonth)) counters.delete(key);
    for (const key of announced) if (key.slice(0, 10) < now.previousMonth) announced.delete(key);
  };

  const counterOf = (rule: QuotaRule, start: string): Counter => {
    const key = keyOf(rule, start);
    const counter = counters.get(key);
    if (counter !== undefined) return counter;
    forget(clock.current());
    const empty: Counter = {
      tenant_id: rule.tenantId,
      agent_name: rule.agentName,
      period: rule.period,
      period_start: start,
      runs: 0,
      tokens: 0,
      cost_micros: 0,
      most_tokens: 0,
      most_cost_micros: 0,
      updated_at: 0,
    };
    counters.set(key, empty);
    return empty;
  };

  const tell = (rule: QuotaRule, counter: Counter, when: number, runId: string): void => {
    const metrics = [
      ['Runs', rule.maxRuns, counter.runs],
      ['Tokens', rule.maxTokens, counter.tokens],
      ['Cost', rule.maxCostMicros, counter.cost_micros],
    ] as const;
    for (const [metric, limit, used] of metrics)
      for (const percent of percents) {
        if (limit === null || limit === 0 || used * 100 < limit * percent) continue;
        const key = `${counter.period_start}\n${keyOf(rule, '')}\n${metric}\n${percent}`;
        if (announced.has(key)) continue;
        announced.add(key);
        crossed({ rule, metric, periodStart: counter.period_start, percent, at: when, runId });
      }
  };

  const book = ({ run, periods }: Booked): void => {
    open.set(run.agentName, (open.get(run.agentName) ?? 1) - 1);
    for (const rule of rules) {
      if (!appliesTo(rule, run.agentName)) continue;
      const counter = counterOf(rule, startOf(rule, periods));
      counter.tokens += run.tokens;
      counter.cost_micros += run.costMicros;
      counter.most_tokens = Math.max(counter.most_tokens, run.tokens);
      counter.most_cost_micros = Math.max(counter.most_cost_micros, run.costMicros);
      tell(rule, counter, run.endedAt ?? run.startedAt, run.id);
    }
  };

  /** Books what has ended by now. */
  const advance = (to: number): void => {
    for (let next = running.at(-1); next !== undefined; next = running.at(-1)) {
      if ((next.run.endedAt ?? Number.POSITIVE_INFINITY) > to) break;
      running.pop();
      book(next);
    }
    at = to;
  };

  const enter = (run: PastRun): void => {
    const periods = clock.current();
    open.set(run.agentName, (open.get(run.agentName) ?? 0) + 1);
    if (run.counts)
      for (const rule of rules) {
        if (!appliesTo(rule, run.agentName)) continue;
        const counter = counterOf(rule, startOf(rule, periods));
        counter.runs += 1;
        tell(rule, counter, run.startedAt, run.id);
      }
    if (run.endedAt === null) return;
    let place = running.length;
    while (place > 0 && (running[place - 1]?.run.endedAt ?? 0) < run.endedAt) place -= 1;
    running.splice(place, 0, { run, periods });
  };

  const verdictOf = (run: PastRun): PastVerdict => {
    const own = rules.filter((rule) => appliesTo(rule, run.agentName));
    if (!run.counts || own.length === 0) return { kind: 'Admitted' };
    const openOf = (rule: QuotaRule): number =>
      rule.agentName === ''
        ? [...open.values()].reduce((sum, count) => sum + count, 0)
        : (open.get(run.agentName) ?? 0);
    // Whether one had a price shows in its cost; of those that were open beside it the counters say enough.
    const isPriced = run.endedAt === null || run.costMicros > 0;
    const inProgress = (rule: QuotaRule) => ({ starting: 0, open: openOf(rule), unpriced: 0 });
    const { reached, reserved } = judge(own, [...counters.values()], clock.current(), inProgress, isPriced);
    const limit = reportedLimit(reached);
    if (limit !== undefined) return { kind: 'Refused', limit };
    const taken = reportedLimit(reserved);
    if (taken === undefined) return { kind: 'Admitted' };
    return { kind: run.mayWait ? 'Held' : 'Refused', limit: taken };
  };

  return {
    advance,
    /** Runs come in the order in which they started. */
    next(run: PastRun): PastVerdict {
      advance(run.startedAt);
      const verdict = verdictOf(run);
      // A run that waited is assumed to have got its place when it started.
      if (verdict.kind !== 'Refused') enter(run);
      return verdict;
    },
  };
};

export type QuotaReplay = ReturnType<typeof createQuotaReplay>;
