import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { PriceList } from '../../engine/pricing.ts';
import type { PeriodClock } from './period-clock.ts';
import {
  type Admission,
  type AdmissionRequest,
  createPlaceDecision,
  type PlaceDecision,
  type PlaceRequest,
  type Places,
  retryAfterMs,
} from './place-decision.ts';
import { createPricedAgents, type PricedAgents } from './priced-agents.ts';
import type { QuotaMetrics } from './quota-metrics.ts';
import { appliesTo, type LimitState } from './quotas.rules.ts';
import type { QuotaRules } from './quotas.store.ts';
import { createTenantLines } from './tenant-lines.ts';

export interface AdmissionDeps {
  readonly rules: QuotaRules;
  readonly places: (priced: PricedAgents, decideOn: PlaceDecision, rejected: (state: LimitState) => void) => Places;
  readonly periods: PeriodClock;
  readonly prices: PriceList;
  readonly allowOnStoreFailure: boolean;
  readonly metrics: QuotaMetrics;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'error'>;
  readonly clock: Clock;
}

// Longer than nearly every model call, shorter than the patience of clients and proxies.
export const longestWaitMs = 30_000;
// Enough for most first runs of a scope to say what they use. It is no reason to refuse anybody.
const unknownWaitMs = 5000;
// Enough for the row of a run that is about to start.
const shortWaitMs = 1000;

/**
 * Decides who may start, tenant by tenant. Whoever is admitted counts from that moment, before the store has the run,
 * so that no two callers get the same last place; a tenant without rules pays for a look into a map.
 * Design: docs/design/quotas.md.
 */
export const createQuotaAdmission = (deps: AdmissionDeps) => {
  const { rules, periods, clock } = deps;
  const priced = createPricedAgents(deps.prices);
  let closed = false;
  const decideOn = createPlaceDecision({ clock, isEnding: () => closed || deps.lifecycle.draining });
  const places = deps.places(priced, decideOn, deps.metrics.rejected);

  const lines = createTenantLines<PlaceRequest, Admission>({
    look: places.look,
    unreadable(tenantId, error) {
      const admitted = deps.allowOnStoreFailure;
      deps.metrics.storeFailed();
      deps.log.error({ tenantId, error, admitted }, 'The quotas of a run could not be read');
      return (request) => {
        if (admitted) return places.unchecked(request);
        throw new AcpError('store-unavailable', 'The quotas of the run cannot be read.', {
          cause: error,
          details: { retryAfterMs },
        });
      };
    },
    dueAt({ until, untilKnown }) {
      const { dayEndsAt } = periods.current();
      const due = Math.min(clock.now() < untilKnown ? untilKnown : until, dayEndsAt);
      return places.unheardMs === null ? due : Math.min(due, clock.now() + places.unheardMs);
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
