import { AcpError } from '../../contract/errors.ts';
import { ChurningMap } from '../../core/churning-map.ts';
import type { Logger } from '../../core/logger.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { PriceList } from '../../engine/pricing.ts';
import type { OpenRuns } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { createPricedAgents } from './priced-agents.ts';
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
import type { QuotaRule, QuotaRules, QuotaStore } from './quotas.store.ts';

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
  /** False: the counters could not be read, and nobody knows what is left. */
  readonly isChecked: boolean;
  settled(): void;
}

export interface QuotaAdmission {
  /** Null where nothing is limited. Rejects with `quota-exceeded`, and `store-unavailable` where that does not admit. */
  admit(request: AdmissionRequest): Promise<Admission> | null;
  /** A run of the tenant has ended: what it had reserved is free. */
  ended(tenantId: string): void;
  /** Refuses those that wait. */
  close(): void;
}

export interface AdmissionDeps {
  readonly store: Pick<QuotaStore, 'recentUsage' | 'openRuns'>;
  readonly rules: QuotaRules;
  readonly clock: PeriodClock;
  readonly prices: PriceList;
  readonly allowOnStoreFailure: boolean;
  readonly metrics: QuotaMetrics;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
}

interface Waiter extends AdmissionRequest {
  readonly id: number;
  readonly isPriced: boolean;
  readonly until: number;
  /** Until when it waits to learn what runs use. */
  readonly untilKnown: number;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (error: unknown) => void;
}

interface Place {
  readonly agentName: string;
  readonly isPriced: boolean;
}

interface TenantGate {
  readonly waiters: ChurningMap<number, Waiter>;
  /** Agents of the runs that were admitted and are not in the store yet. */
  readonly starting: Set<Place>;
  busy: boolean;
  wake: () => void;
}

// Longer than nearly every model call, shorter than the patience of clients and proxies.
export const longestWaitMs = 30_000;
// Enough for most first runs of a scope to say what they use. It is no reason to refuse anybody.
const unknownWaitMs = 5000;
// Enough for the row of a run that is about to start.
const shortWaitMs = 1000;
// Runs of other paths end without telling; they are found by looking.
const pollMs = 100;
/** When places that others hold may be free again. */
export const retryAfterMs = 5000;

const nobody = (): void => undefined;

const total = (runs: readonly OpenRuns[]): number => runs.reduce((sum, run) => sum + run.count, 0);

/**
 * Decides who may start, tenant by tenant. Whoever is admitted counts from that moment, before the store has the run,
 * so that no two callers get the same last place; a tenant without rules pays for a look into a map.
 */
export const createQuotaAdmission = (deps: AdmissionDeps): QuotaAdmission => {
  const { store, rules, clock, now } = deps;
  const gates = new Map<string, TenantGate>();
  const priced = createPricedAgents(deps.prices);
  let closed = false;
  let lastWaiter = 0;

  const forget = (tenantId: string, gate: TenantGate): void => {
    if (!gate.busy && gate.starting.size === 0 && gates.get(tenantId) === gate) gates.delete(tenantId);
  };

  const take = (gate: TenantGate, waiter: Waiter, isChecked = true): void => {
    const place: Place = { agentName: waiter.agentName, isPriced: waiter.isPriced };
    gate.starting.add(place);
    gate.waiters.delete(waiter.id);
    waiter.resolve({
      isChecked,
      settled() {
        if (!gate.starting.delete(place)) return;
        gate.wake();
        forget(waiter.tenantId, gate);
      },
    });
  };

  const refuse = (gate: TenantGate, waiter: Waiter, error: unknown): void => {
    gate.waiters.delete(waiter.id);
    waiter.reject(error);
  };

  const overLimit = (gate: TenantGate, waiter: Waiter, state: LimitState, error: AcpError): void => {
    deps.metrics.rejected(state);
    refuse(gate, waiter, error);
  };

  const withoutStore = (gate: TenantGate, tenantId: string, error: unknown): void => {
    deps.metrics.storeFailed();
    deps.log.error({ tenantId, error, admitted: deps.allowOnStoreFailure }, 'The quotas of a run could not be read');
    for (const waiter of [...gate.waiters.values()])
      if (deps.allowOnStoreFailure) take(gate, waiter, false);
      else
        refuse(
          gate,
          waiter,
          new AcpError('store-unavailable', 'The quotas of the run cannot be read.', {
            cause: error,
            details: { retryAfterMs },
          }),
        );
  };

  const decide = (
    gate: TenantGate,
    waiter: Waiter,
    found: readonly QuotaRule[],
    counters: Awaited<ReturnType<QuotaStore['recentUsage']>>,
    inProgress: (rule: QuotaRule) => InProgress,
  ): void => {
    if (waiter.signal.aborted) {
      refuse(gate, waiter, new AcpError('run-canceled', 'The caller went away before the run began.'));
      return;
    }
    const own = found.filter((rule) => appliesTo(rule, waiter.agentName));
    const { reached, reserved, isUnknown } = judge(own, counters, clock.current(), inProgress, waiter.isPriced);
    const limit = reportedLimit(reached);
    const taken = reportedLimit(reserved);
    if (limit !== undefined) overLimit(gate, waiter, limit, usedUp(limit, now()));
    else if (taken === undefined && !(isUnknown && now() < waiter.untilKnown)) take(gate, waiter);
    else if (closed || deps.lifecycle.draining)
      refuse(gate, waiter, new AcpError('draining', 'The service is stopping.', { details: { retryAfterMs } }));
    else if (taken !== undefined && now() >= waiter.until)
      overLimit(gate, waiter, taken, takenByOthers(taken, retryAfterMs));
  };

  /** One look at the store serves everybody who waits. */
  const round = async (tenantId: string, gate: TenantGate): Promise<void> => {
    const before = [...gate.starting];
    const found = (await rules.read(tenantId)) ?? [];
    const waiting = [...gate.waiters.values()];
    const names = ['', ...new Set(waiting.map((waiter) => waiter.agentName))];
    const limitsUse = found.some((rule) => rule.maxTokens !== null || rule.maxCostMicros !== null);
    // Open runs first: a run that ends in between has its use in the counters and still stands among the open ones.
    const open: readonly OpenRuns[] = limitsUse ? await store.openRuns(tenantId) : [];
    const counters = await store.recentUsage(tenantId, clock.current(), names);
    // Whoever came after the look began waits for the next one.
    for (const waiter of waiting) {
      if (gate.waiters.get(waiter.id) === undefined) continue;
      // Those whose run was stored while the store was read may be missing from what was read.
      const starting = new Set([...before, ...gate.starting]);
      decide(gate, waiter, found, counters, (rule) => {
        const places = [...starting].filter((place) => isInScope(rule, place.agentName));
        const runs = open.filter((run) => isInScope(rule, run.agentName));
        return {
          starting: places.length,
          open: total(runs),
          unpriced:
            places.filter((place) => !place.isPriced).length +
            total(runs.filter((run) => !priced.mayCost(tenantId, run.agentName))),
        };
      });
    }
  };

  const work = async (tenantId: string, gate: TenantGate): Promise<void> => {
    gate.busy = true;
    while (gate.waiters.size > 0) {
      const asked = gate.waiters.size;
      let timer: NodeJS.Timeout | undefined;
      const woken = new Promise<void>((resolve) => {
        gate.wake = resolve;
        timer = setTimeout(resolve, pollMs);
      });
      await round(tenantId, gate).catch((error: unknown) => withoutStore(gate, tenantId, error));
      // Nobody was answered: there is nothing to decide before something happens.
      if (gate.waiters.size >= asked) await woken;
      clearTimeout(timer);
    }
    gate.busy = false;
    gate.wake = nobody;
    forget(tenantId, gate);
  };

  const gateOf = (tenantId: string): TenantGate => {
    const known = gates.get(tenantId);
    if (known !== undefined) return known;
    const gate: TenantGate = { waiters: new ChurningMap(), starting: new Set(), busy: false, wake: nobody };
    gates.set(tenantId, gate);
    return gate;
  };

  return {
    admit(request) {
      const { tenantId, agentName, signal, mayWait } = request;
      const known = rules.known(tenantId);
      if (known !== undefined && !known.some((rule) => appliesTo(rule, agentName))) return null;
      const gate = gateOf(tenantId);
      return new Promise((resolve, reject) => {
        const until = now() + (mayWait ? longestWaitMs : shortWaitMs);
        const untilKnown = now() + (mayWait ? unknownWaitMs : shortWaitMs);
        const isPriced = priced.asked(tenantId, agentName, request.agent ?? null);
        lastWaiter += 1;
        gate.waiters.set(lastWaiter, { ...request, id: lastWaiter, isPriced, until, untilKnown, resolve, reject });
        signal.addEventListener('abort', () => gate.wake(), { once: true });
        if (gate.busy) gate.wake();
        else void work(tenantId, gate);
      });
    },
    ended: (tenantId) => gates.get(tenantId)?.wake(),
    close() {
      closed = true;
      for (const gate of gates.values()) gate.wake();
    },
  };
};
