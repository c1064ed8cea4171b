import { AcpError } from '../../contract/errors.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { CurrentPeriods } from './period-clock.ts';
import type { QuotaMetric } from './quotas.schema.ts';
import type { QuotaRule } from './quotas.store.ts';

/** A limit of a rule beside what stands against it. Cost is in micro-units. */
export interface LimitState {
  readonly rule: QuotaRule;
  readonly metric: QuotaMetric;
  readonly limit: number;
  readonly used: number;
  /** Epoch milliseconds. */
  readonly resetsAt: number;
}

/** Runs that stand against the limits of a scope beside those that its counter has. */
export interface InProgress {
  /** Admitted, but not in the store yet. */
  readonly starting: number;
  /** In the store and not ended: queued or executing. */
  readonly open: number;
  /** Those of both whose calls have no price. */
  readonly unpriced: number;
}

/** Whether runs of the agent count against the rule, which may be disabled. */
export const isInScope = (rule: QuotaRule, agentName: string): boolean =>
  rule.agentName === '' || rule.agentName === agentName;

export const appliesTo = (rule: QuotaRule, agentName: string): boolean => rule.enabled && isInScope(rule, agentName);

/** `most`: what the run has used that used most so far; `counted`: runs that were counted in the periods that were read. */
type KnownLimit = LimitState & { readonly most: number; readonly counted: number };

const limitsOf = (
  rule: QuotaRule,
  counters: readonly QuotaUsageRow[],
  periods: CurrentPeriods,
): readonly KnownLimit[] => {
  const isDaily = rule.period === 'Daily';
  const start = isDaily ? periods.day : periods.month;
  const resetsAt = isDaily ? periods.dayEndsAt : periods.monthEndsAt;
  const own = counters.filter((row) => row.agent_name === rule.agentName);
  const current = own.find((row) => row.period === rule.period && row.period_start === start);
  // What runs use is known from any of the periods that were read: a new day begins with what the last one has seen.
  const most = (of: (row: QuotaUsageRow) => number): number => Math.max(0, ...own.map(of));
  const counted = own.reduce((sum, row) => sum + (row.period === rule.period ? row.runs : 0), 0);
  const state = (metric: QuotaMetric, limit: number | null, used: number | undefined, mostOfOne: number) =>
    limit === null ? [] : [{ rule, metric, limit, used: used ?? 0, resetsAt, most: mostOfOne, counted }];
  return [
    ...state('Runs', rule.maxRuns, current?.runs, 1),
    ...state(
      'Tokens',
      rule.maxTokens,
      current?.tokens,
      most((row) => row.most_tokens),
    ),
    ...state(
      'Cost',
      rule.maxCostMicros,
      current?.cost_micros,
      most((row) => row.most_cost_micros),
    ),
  ];
};

export interface Judgement {
  /** Limits that are reached. */
  readonly reached: readonly LimitState[];
  /** Limits that are not, and that the runs in progress may reach. */
  readonly reserved: readonly LimitState[];
  /** Limits of whose use nothing is known yet, and one in progress is about to tell. */
  readonly unknown: readonly LimitState[];
}

const isNever = (): boolean => false;

/** Runs in the store are in the counter of runs already; what they will use is not in the others. */
const holdingRuns = ({ metric }: LimitState, { starting, open, unpriced }: InProgress, isPriced: boolean): number =>
  ({ Runs: starting, Tokens: starting + open, Cost: isPriced ? starting + open - unpriced : 0 })[metric];

const isUnknown = ({ most, counted }: KnownLimit, { starting, open }: InProgress): boolean =>
  most === 0 && counted <= starting + open;

const takesRest = ({ most, used, limit }: KnownLimit, others: number): boolean =>
  most > 0 && used + (others + 1) * most > limit;

/**
 * Whether one more run may start. Each run in progress, and the new one, is taken to use as much as the run that has
 * used most so far; a run alone starts while anything is left. Runs without a price hold nothing of a limit of cost, and
 * where runs have ended and none has told what it used, nobody holds anything. `isAwaited`: somebody waits for the same limit
 * already, and comes first.
 */
export const judge = (
  rules: readonly QuotaRule[],
  counters: readonly QuotaUsageRow[],
  periods: CurrentPeriods,
  inProgress: (rule: QuotaRule) => InProgress,
  isPriced = true,
  isAwaited: (state: LimitState) => boolean = isNever,
): Judgement => {
  const reached: LimitState[] = [];
  const reserved: LimitState[] = [];
  const unknown: LimitState[] = [];
  for (const rule of rules) {
    const others = inProgress(rule);
    for (const state of limitsOf(rule, counters, periods)) {
      const holding = holdingRuns(state, others, isPriced);
      if (state.used >= state.limit) reached.push(state);
      else if (holding <= 0) continue;
      else if (takesRest(state, holding) || isAwaited(state)) reserved.push(state);
      else if (isUnknown(state, others)) unknown.push(state);
    }
  }
  return { reached, reserved, unknown };
};

/** The limit that resets last; on a tie the agent's. */
export const reportedLimit = (states: readonly LimitState[]): LimitState | undefined =>
  [...states].sort(
    (a, b) => b.resetsAt - a.resetsAt || (a.rule.agentName === '' ? 1 : 0) - (b.rule.agentName === '' ? 1 : 0),
  )[0];

const metricWords = { Runs: 'run', Tokens: 'token', Cost: 'cost' } as const;

export const shownAmount = (metric: string, amount: number): number =>
  metric === 'Cost' ? amount / 1_000_000 : amount;

/** Whose rule it is, in a sentence. */
export const ownerOf = ({ agentName }: QuotaRule): string => (agentName === '' ? 'the tenant' : `agent '${agentName}'`);

const describe = ({ rule, metric }: LimitState): string =>
  `${rule.period === 'Daily' ? 'daily' : 'monthly'} ${metricWords[metric]} quota of ${ownerOf(rule)}`;

const refusal = (state: LimitState, message: string, retryAfterMs: number): AcpError =>
  new AcpError('quota-exceeded', message, {
    details: {
      quotaMetric: state.metric,
      quotaPeriod: state.rule.period,
      quotaLimit: shownAmount(state.metric, state.limit),
      quotaUsed: shownAmount(state.metric, state.used),
      quotaResetsAt: isoTime(state.resetsAt),
      retryAfterMs,
    },
  });

export const usedUp = (state: LimitState, now: number): AcpError =>
  refusal(state, `The ${describe(state)} is used up.`, Math.max(state.resetsAt - now, 1));

export const takenByOthers = (state: LimitState, retryAfterMs: number): AcpError =>
  refusal(state, `Runs in progress may use up the rest of the ${describe(state)}.`, retryAfterMs);
