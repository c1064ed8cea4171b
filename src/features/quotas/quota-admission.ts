import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { PriceList } from '../../engine/pricing.ts';
import type { OpenRuns } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { createPricedAgents } from './priced-agents.ts';
import type { QuotaHolds } from './quota-holds.store.ts';
import type { QuotaMetrics } from './quota-metrics.ts';
import {
  appliesTo,
  type InProgress,
  isInScope,
  judge,
  type LimitState,
  reportedLimit,
  takenByOthers,
  usedUp,
} from './quotas.rules.ts';
import type { QuotaRules, QuotaStore } from './quotas.store.ts';
import { createTenantLines, type Decide } from './tenant-lines.ts';

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

export interface AdmissionDeps {
  readonly store: Pick<QuotaStore, 'recentUsage' | 'openRuns'>;
  readonly rules: QuotaRules;
  readonly holds: QuotaHolds;
  readonly periods: PeriodClock;
  readonly prices: PriceList;
  readonly allowOnStoreFailure: boolean;
  readonly metrics: QuotaMetrics;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'error'>;
  readonly clock: Clock;
  readonly newId: () => string;
}

interface Asked extends AdmissionRequest {
  readonly isPriced: boolean;
  readonly until: number;
  /** Until when it waits to learn what runs use. */
  readonly untilKnown: number;
}

// Longer than nearly every model call, shorter than the patience of clients and proxies.
export const longestWaitMs = 30_000;
// Enough for most first runs of a scope to say what they use. It is no reason to refuse anybody.
const unknownWaitMs = 5000;
// Enough for the row of a run that is about to start.
const shortWaitMs = 1000;
/** When places that others hold may be free again. */
export const retryAfterMs = 5000;

const total = (runs: readonly OpenRuns[]): number => runs.reduce((sum, run) => sum + run.count, 0);

/**
 * Decides who may start, tenant by tenant. Whoever is admitted counts from that moment, before the store has the run,
 * so that no two callers get the same last place; a tenant without rules pays for a look into a map.
 */
export const createQuotaAdmission = (deps: AdmissionDeps) => {
  const { store, rules, holds, periods, clock } = deps;
  const priced = createPricedAgents(deps.prices);
  let closed = false;

  const take = ({ tenantId, agentName, isPriced }: Asked, isChecked = true): Admission => {
    const runId = deps.newId();
    const root = { tenantId, agentName, day: periods.current().day };
    // What runs use is known when they end; one that can cost nothing holds nothing of a limit of cost.
    const held = { tokens: Number.POSITIVE_INFINITY, costMicros: isPriced ? Number.POSITIVE_INFINITY : 0 };
    holds.take({ runId, root, isAdmission: true, held }, true);
    let isSettled = false;
    return {
      runId,
      isChecked,
      settled() {
        if (!isSettled) holds.release(runId);
        isSettled = true;
      },
    };
  };

  const overLimit = (state: LimitState, error: AcpError): AcpError => {
    deps.metrics.rejected(state);
    return error;
  };

  /** Of a request that cannot be admitted now. */
  const refuseIfLate = ({ until }: Asked, taken: LimitState | undefined): void => {
    if (closed || deps.lifecycle.draining)
      throw new AcpError('draining', 'The service is stopping.', { details: { retryAfterMs } });
    if (taken !== undefined && clock.now() >= until) throw overLimit(taken, takenByOthers(taken, retryAfterMs));
  };

  const read = async (tenantId: string, names: readonly string[]) => {
    const all = (await rules.read(tenantId)) ?? [];
    const limitsUse = all.some((rule) => rule.maxTokens !== null || rule.maxCostMicros !== null);
    // Open runs first: a run that ends in between has its use in the counters and still stands among the open ones.
    const open: readonly OpenRuns[] = limitsUse ? await store.openRuns(tenantId) : [];
    const counters = await store.recentUsage(tenantId, periods.current(), names);
    return { all, open, counters };
  };

  const look = async (tenantId: string, asked: readonly Asked[]): Promise<Decide<Asked, Admission>> => {
    const names = ['', ...new Set(asked.map(({ agentName }) => agentName))];
    const { all, open, counters } = await holds.readSteadily(tenantId, () => read(tenantId, names));
    const inProgress = (rule: (typeof all)[number]): InProgress => {
      const isOwn = ({ agentName }: { readonly agentName: string }): boolean => isInScope(rule, agentName);
      const places = [...holds.of(tenantId)].filter(({ isAdmission, root }) => isAdmission && isOwn(root));
      const runs = open.filter(isOwn);
      return {
        starting: places.length,
        open: total(runs),
        unpriced:
          places.filter(({ held }) => held.costMicros === 0).length +
          total(runs.filter(({ agentName }) => !priced.mayCost(tenantId, agentName))),
      };
    };
    // Limits that requests earlier in line wait for: nobody overtakes those requests.
    const awaited = new Set<string>();
    const keyOf = ({ rule, metric }: LimitState): string => `${rule.id} ${metric}`;

    return (request) => {
      if (request.signal.aborted) throw new AcpError('run-canceled', 'The caller went away before the run began.');
      const own = all.filter((rule) => appliesTo(rule, request.agentName));
      const isAwaited = (state: LimitState): boolean => awaited.has(keyOf(state));
      const { reached, reserved, unknown } = judge(
        own,
        counters,
        periods.current(),
        inProgress,
        request.isPriced,
        isAwaited,
      );
      const limit = reportedLimit(reached);
      if (limit !== undefined) throw overLimit(limit, usedUp(limit, clock.now()));
      if (reserved.length === 0 && (unknown.length === 0 || clock.now() >= request.untilKnown)) return take(request);
      refuseIfLate(request, reportedLimit(reserved));
      for (const state of reserved) awaited.add(keyOf(state));
      return null;
    };
  };

  const lines = createTenantLines<Asked, Admission>({
    look,
    unreadable(tenantId, error) {
      const admitted = deps.allowOnStoreFailure;
      deps.metrics.storeFailed();
      deps.log.error({ tenantId, error, admitted }, 'The quotas of a run could not be read');
      return (request) => {
        if (admitted) return take(request, false);
        throw new AcpError('store-unavailable', 'The quotas of the run cannot be read.', {
          cause: error,
          details: { retryAfterMs },
        });
      };
    },
    dueAt({ until, untilKnown }) {
      const { dayEndsAt } = periods.current();
      return Math.min(clock.now() < untilKnown ? untilKnown : until, dayEndsAt);
    },
    clock,
  });

  return {
    /** Null where nothing is limited. Rejects with `quota-exceeded`, and `store-unavailable` where that does not admit. */
    admit(request: AdmissionRequest): Promise<Admission> | null {
      const { tenantId, agentName, mayWait } = request;
      const own = rules.known(tenantId);
      if (own !== undefined && !own.some((rule) => appliesTo(rule, agentName))) return null;
      const now = clock.now();
      return lines.join(tenantId, {
        ...request,
        isPriced: priced.asked(tenantId, agentName, request.agent ?? null),
        until: now + (mayWait ? longestWaitMs : shortWaitMs),
        untilKnown: now + (mayWait ? unknownWaitMs : shortWaitMs),
      });
    },
    /** Something has changed by which runs of the tenant may start, or not any more; null: of all tenants. */
    wake: lines.wake,
    /** Refuses those that wait. */
    close(): void {
      closed = true;
      lines.wake(null);
    },
  };
};

export type QuotaAdmission = ReturnType<typeof createQuotaAdmission>;
