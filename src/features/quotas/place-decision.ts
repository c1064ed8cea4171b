import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { OpenRuns } from './counted-roots.ts';
import type { CurrentPeriods } from './period-clock.ts';
import {
  appliesTo,
  type InProgress,
  judge,
  type LimitState,
  reportedLimit,
  takenByOthers,
  usedUp,
} from './quotas.rules.ts';
import type { QuotaRule } from './quotas.store.ts';
import type { Decide } from './tenant-lines.ts';

export interface AdmissionRequest {
  readonly tenantId: string;
  readonly agentName: string;
  /** False: whoever asks gets an answer at once rather than a place later. */
  readonly mayWait: boolean;
  /** The agent as it will run; null or absent: not known yet, or it does not compile. */
  readonly agent?: CompiledAgent | null;
  readonly signal: AbortSignal;
}

/** A place for one run. Whoever has it says when the run is in the store, or will never be. */
export interface Admission {
  /** The run has this id: what records it settles the hold of its place. */
  readonly runId: string;
  /** False: the counters could not be read, and nobody knows what is left. */
  readonly isChecked: boolean;
  settled(): void;
}

export interface PlaceRequest extends AdmissionRequest {
  readonly isPriced: boolean;
  readonly until: number;
  /** Until when it waits to learn what runs use. */
  readonly untilKnown: number;
}

/** Where places come from: from the memory of the owner of a store, or from the rows that processes share. */
export interface Places {
  /** One look at the store for all who wait. */
  look(tenantId: string, requests: readonly PlaceRequest[]): Promise<Decide<PlaceRequest, Admission>>;
  /** A place that nobody knows to be free, because the store cannot be read. */
  unchecked(request: PlaceRequest): Admission;
  /** How long at most those who wait are not told that another process has freed something; null: there is none. */
  readonly unheardMs: number | null;
}

/** What stands against the places of a tenant. */
export interface PlaceView {
  readonly rules: readonly QuotaRule[];
  readonly counters: readonly QuotaUsageRow[];
  readonly periods: CurrentPeriods;
  inProgress(rule: QuotaRule): InProgress;
}

/** When places that others hold may be free again. */
export const retryAfterMs = 5000;

/** Of a run whose place another process has released: its own gave no sign of life for too long. */
export const lapsedAdmission = (cause: unknown): AcpError =>
  new AcpError('store-unavailable', 'The place of the run was released, because it did not begin in time.', {
    cause,
    details: { retryAfterMs },
  });

export const totalOf = (runs: readonly Pick<OpenRuns, 'count'>[]): number =>
  runs.reduce((sum, run) => sum + run.count, 0);

/** Of an admission, what runs use is known when they end; one that can cost nothing holds nothing of a limit of cost. */
export const heldByPlace = ({ isPriced }: Pick<PlaceRequest, 'isPriced'>) => ({
  tokens: Number.POSITIVE_INFINITY,
  costMicros: isPriced ? Number.POSITIVE_INFINITY : 0,
});

/** The periods before tell how much runs use when the current ones do not yet. */
export const startsOf = ({ day, month, previousDay, previousMonth }: CurrentPeriods): readonly string[] => [
  ...new Set([day, month, previousDay, previousMonth]),
];

export interface PlaceDecisionDeps {
  readonly clock: Pick<Clock, 'now'>;
  /** True: nobody is admitted any more. */
  readonly isEnding: () => boolean;
}

/** Who is admitted, waits or is refused; `take` makes a place, and `rejected` hears of the limits that refuse. */
export const createPlaceDecision = ({ clock, isEnding }: PlaceDecisionDeps) => {
  /** Of a request that cannot be admitted now. */
  const refuseIfLate = ({ until }: PlaceRequest, taken: LimitState | undefined, refuse: Refuse): void => {
    if (isEnding()) throw new AcpError('draining', 'The service is stopping.', { details: { retryAfterMs } });
    if (taken !== undefined && clock.now() >= until) throw refuse(taken, takenByOthers(taken, retryAfterMs));
  };
  return <P>(
    { rules, counters, periods, inProgress }: PlaceView,
    take: (request: PlaceRequest) => P,
    rejected: (state: LimitState) => void,
  ): Decide<PlaceRequest, P> => {
    // Limits that requests earlier in line wait for: nobody overtakes those requests.
    const awaited = new Set<string>();
    const keyOf = ({ rule, metric }: LimitState): string => `${rule.id} ${metric}`;
    const refuse: Refuse = (state, error) => {
      rejected(state);
      return error;
    };
    return (request) => {
      if (request.signal.aborted) throw new AcpError('run-canceled', 'The caller went away before the run began.');
      const own = rules.filter((rule) => appliesTo(rule, request.agentName));
      const isAwaited = (state: LimitState): boolean => awaited.has(keyOf(state));
      const { reached, reserved, unknown } = judge(own, counters, periods, inProgress, request.isPriced, isAwaited);
      const limit = reportedLimit(reached);
      if (limit !== undefined) throw refuse(limit, usedUp(limit, clock.now()));
      if (reserved.length === 0 && (unknown.length === 0 || clock.now() >= request.untilKnown)) return take(request);
      refuseIfLate(request, reportedLimit(reserved), refuse);
      for (const state of reserved) awaited.add(keyOf(state));
      return null;
    };
  };
};

type Refuse = (state: LimitState, error: AcpError) => AcpError;

export type PlaceDecision = ReturnType<typeof createPlaceDecision>;
