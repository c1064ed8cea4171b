import type { OpenRuns } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import {
  type Admission,
  heldByPlace,
  type PlaceDecision,
  type PlaceRequest,
  type Places,
  totalOf,
} from './place-decision.ts';
import type { PricedAgents } from './priced-agents.ts';
import type { QuotaHolds } from './quota-holds.store.ts';
import { type InProgress, isInScope, type LimitState } from './quotas.rules.ts';
import type { QuotaRules, QuotaStore } from './quotas.store.ts';

export interface OwnedPlacesDeps {
  readonly store: Pick<QuotaStore, 'recentUsage' | 'openRuns'>;
  readonly rules: QuotaRules;
  readonly holds: QuotaHolds;
  readonly periods: PeriodClock;
  readonly newId: () => string;
}

/** Places of a store with one owner: what is admitted and not stored is in its memory. */
export const createOwnedPlaces =
  ({ store, rules, holds, periods, newId }: OwnedPlacesDeps) =>
  (priced: PricedAgents, decideOn: PlaceDecision, rejected: (state: LimitState) => void): Places => {
    const take = (request: PlaceRequest, isChecked = true): Admission => {
      const runId = newId();
      const { tenantId, agentName } = request;
      const root = { tenantId, agentName, day: periods.current().day };
      holds.take({ runId, root, isAdmission: true, held: heldByPlace(request) }, true);
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

    const read = async (tenantId: string, names: readonly string[]) => {
      const all = (await rules.read(tenantId)) ?? [];
      const limitsUse = all.some((rule) => rule.maxTokens !== null || rule.maxCostMicros !== null);
      // Open runs first: a run that ends in between has its use in the counters and still stands among the open ones.
      const open: readonly OpenRuns[] = limitsUse ? await store.openRuns(tenantId) : [];
      const counters = await store.recentUsage(tenantId, periods.current(), names);
      return { all, open, counters };
    };

    return {
      async look(tenantId, requests) {
        const names = ['', ...new Set(requests.map(({ agentName }) => agentName))];
        const { all, open, counters } = await holds.readSteadily(tenantId, () => read(tenantId, names));
        const inProgress = (rule: (typeof all)[number]): InProgress => {
          const isOwn = ({ agentName }: { readonly agentName: string }): boolean => isInScope(rule, agentName);
          const places = [...holds.of(tenantId)].filter(({ isAdmission, root }) => isAdmission && isOwn(root));
          const runs = open.filter(isOwn);
          return {
            starting: places.length,
            open: totalOf(runs),
            unpriced:
              places.filter(({ held }) => held.costMicros === 0).length +
              totalOf(runs.filter(({ agentName }) => !priced.mayCost(tenantId, agentName))),
          };
        };
        return decideOn({ rules: all, counters, periods: periods.current(), inProgress }, take, rejected);
      },
      unchecked: (request) => take(request, false),
      unheardMs: null,
    };
  };
