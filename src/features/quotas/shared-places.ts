import { type AgreedHoldsDeps, agreedHolds, type Known, type Verdict } from './agreed-holds.ts';
import { monthOf } from './counted-roots.ts';
import type { CurrentPeriods, PeriodClock } from './period-clock.ts';
import {
  type Admission,
  heldByPlace,
  type PlaceDecision,
  type PlaceRequest,
  type Places,
  type PlaceView,
  startsOf,
  totalOf,
} from './place-decision.ts';
import type { PricedAgents } from './priced-agents.ts';
import type { QuotaBacklog } from './quota-backlog.ts';
import { noUse } from './quota-use.ts';
import { isInScope, type LimitState } from './quotas.rules.ts';
import type { QuotaRule, QuotaRules } from './quotas.store.ts';
import type { AskedHold, SharedHolds } from './shared-holds.store.ts';
import type { Standing, StandingPlaces } from './standing.store.ts';

export interface SharedPlacesDeps {
  readonly standing: Pick<Standing, 'places'>;
  readonly rules: QuotaRules;
  readonly holds: Pick<SharedHolds, 'asking' | 'ask' | 'wasCut' | 'give' | 'drop' | 'release'>;
  readonly unwritten: Pick<QuotaBacklog, 'added' | 'openAdded'>;
  readonly periods: PeriodClock;
  readonly newId: () => string;
}

interface Stand extends StandingPlaces {
  readonly rules: readonly QuotaRule[];
  readonly periods: CurrentPeriods;
}

interface PlaceWish {
  readonly hold: AskedHold;
  readonly isPriced: boolean;
}

// Only for guesses: of a tenant that it forgets the store is asked once more.
const mostKnown = 1000;
// One small read for each tenant with somebody in line; what frees room is announced, which is sooner.
export const unheardMs = 250;
// A connection that is cut is no store that fails: it is asked again, on another one.
const mostCuts = 3;

const startIn = (day: string, { period }: QuotaRule): string => (period === 'Daily' ? day : monthOf(day));

/** Places of a store that several processes share: each is a row before anybody is told that they have it. */
export const createSharedPlaces =
  ({ standing, rules, holds, unwritten, periods, newId }: SharedPlacesDeps) =>
  (priced: PricedAgents, decideOn: PlaceDecision, rejected: (state: LimitState) => void): Places => {
    const known = new Map<string, Known<Stand, PlaceWish>>();

    const admission = (runId: string, isChecked: boolean): Admission => ({
      runId,
      isChecked,
      settled: () => holds.release(runId),
    });

    const viewOf = (
      tenantId: string,
      stand: Stand,
      current: CurrentPeriods,
      taken: readonly PlaceWish[],
    ): PlaceView => ({
      rules: stand.rules,
      counters: stand.counters,
      periods: current,
      inProgress(rule) {
        const isOwn = ({ agentName }: { readonly agentName: string }): boolean => isInScope(rule, agentName);
        // An admission counts in its own day, whenever its run is stored.
        const isCounted = (place: { readonly agentName: string; readonly day: string }): boolean =>
          isOwn(place) && startIn(place.day, rule) === startIn(current.day, rule);
        const places = stand.places.filter(isCounted);
        const own = taken.filter(({ hold }) => isCounted(hold.root));
        const runs = stand.open.filter(isOwn);
        return {
          starting: totalOf(places) + own.length,
          open: totalOf(runs),
          unpriced:
            places.reduce((sum, place) => sum + place.unpriced, 0) +
            own.filter(({ isPriced }) => !isPriced).length +
            totalOf(runs.filter(({ agentName }) => !priced.mayCost(tenantId, agentName))),
        };
      },
    });

    const wishOf = (request: PlaceRequest, day: string): PlaceWish => {
      const { tenantId, agentName, isPriced } = request;
      const root = { tenantId, agentName, day };
      const held = heldByPlace(request);
      return { hold: holds.asking({ runId: newId(), root, isAdmission: true, held, spent: noUse }), isPriced };
    };

    const verdicts = (
      tenantId: string,
      stand: Stand,
      requests: readonly PlaceRequest[],
      given: readonly PlaceWish[],
      isFinal: boolean,
    ): ReadonlyMap<PlaceRequest, Verdict<PlaceWish>> => {
      const current = isFinal ? stand.periods : periods.current();
      const taken = [...given];
      const take = (request: PlaceRequest): PlaceWish => {
        const wish = wishOf(request, current.day);
        taken.push(wish);
        return wish;
      };
      const decide = decideOn(viewOf(tenantId, stand, current, taken), take, isFinal ? rejected : () => undefined);
      const verdictOf = (request: PlaceRequest): Verdict<PlaceWish> => {
        try {
          const wish = decide(request);
          return wish === null ? null : { wish };
        } catch (error) {
          return { error };
        }
      };
      return new Map(requests.map((request) => [request, verdictOf(request)]));
    };

    /** `lost`: runs of questions whose answers were cut off. Their places may be stored, and are on their way out. */
    const ask = async (
      tenantId: string,
      asked: readonly AskedHold[],
      requests: readonly PlaceRequest[],
      lost: readonly string[],
    ) => {
      const all = (await rules.read(tenantId)) ?? [];
      const current = periods.current();
      const starts = startsOf(current);
      const names = ['', ...new Set(requests.map(({ agentName }) => agentName))];
      const limitsUse = all.some((rule) => rule.maxTokens !== null || rule.maxCostMicros !== null);
      const reading = standing.places(tenantId, starts, names, limitsUse, lost);
      const { standing: read, stored } = await holds.ask(tenantId, 'places', asked, reading);
      const stand: Stand = {
        rules: all,
        periods: current,
        places: read.places,
        counters: unwritten.added(read.counters, tenantId, starts, names),
        open: unwritten.openAdded(read.open, tenantId),
      };
      return { standing: stand, stored };
    };

    /** After a cut for other runs, so that nothing of the question before can become the place of one of these. */
    const agreed = async (
      tenantId: string,
      requests: readonly PlaceRequest[],
      before: Known<Stand, PlaceWish> | undefined,
    ) => {
      const asked: string[] = [];
      let given: string[] = [];
      let lost: readonly string[] = [];
      const deps = {
        verdicts: (...of: Parameters<AgreedHoldsDeps<PlaceRequest, Stand, PlaceWish>['verdicts']>) =>
          verdicts(tenantId, ...of),
        ask(holdsAsked: readonly AskedHold[], waiting: readonly PlaceRequest[]) {
          asked.push(...holdsAsked.map(({ runId }) => runId));
          return ask(tenantId, holdsAsked, waiting, lost);
        },
        fits: (stored: PlaceWish, wish: PlaceWish) => stored.hold.root.day === wish.hold.root.day,
        give({ hold }: PlaceWish) {
          holds.give(hold);
          given.push(hold.runId);
        },
        drop: holds.drop,
      };
      for (let cuts = 1; ; cuts += 1)
        try {
          return await agreedHolds<PlaceRequest, Stand, PlaceWish>(deps, requests, before);
        } catch (error) {
          // In an earlier round of the same decision, of which nobody is told.
          for (const runId of given) holds.release(runId);
          given = [];
          if (cuts > mostCuts || !holds.wasCut(error)) throw error;
          lost = [...asked];
        }
    };

    return {
      async look(tenantId, requests) {
        const before = known.get(tenantId);
        const { known: after, final } = await agreed(tenantId, requests, before);
        if (before === undefined && known.size >= mostKnown) known.clear();
        known.set(tenantId, after);
        return (request) => {
          const verdict = final.get(request);
          if (verdict === undefined) return null;
          if ('error' in verdict) throw verdict.error;
          return admission(verdict.wish.hold.runId, true);
        };
      },
      // There is no row that could hold a place for it.
      unchecked: () => admission(newId(), false),
      unheardMs,
    };
  };
