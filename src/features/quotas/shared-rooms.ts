import { agreedHolds, type Known, type Verdict } from './agreed-holds.ts';
import type { CallDecision, CallRequest, CallRooms, CallTerms } from './call-decision.ts';
import { scopesOf } from './owned-rooms.ts';
import type { QuotaBacklog } from './quota-backlog.ts';
import { anyUse, limitingUse, type StandingUse } from './quota-room.rules.ts';
import { noUse } from './quota-use.ts';
import type { QuotaRule, QuotaRules } from './quotas.store.ts';
import type { AskedHold, SharedHolds } from './shared-holds.store.ts';
import { unheardMs } from './shared-places.ts';
import type { Standing, StandingCalls } from './standing.store.ts';

export interface SharedRoomsDeps {
  readonly standing: Pick<Standing, 'calls'>;
  readonly rules: QuotaRules;
  readonly holds: Pick<SharedHolds, 'asking' | 'ask' | 'give' | 'giveFree' | 'drop' | 'used'>;
  readonly unwritten: Pick<QuotaBacklog, 'added'>;
  readonly decideOn: CallDecision;
}

interface Stand extends StandingCalls {
  readonly rules: readonly QuotaRule[];
}

interface CallWish {
  readonly asked: AskedHold;
  /** Null: no limit applies. */
  readonly hold: AskedHold | null;
  readonly terms: CallTerms;
}

// Only for guesses: of a tenant that it forgets the store is asked once more.
const mostKnown = 1000;

const standingUse = ({ root, held, spent }: AskedHold): StandingUse => ({ root, held, spent, isAdmission: false });

/** What is stored may be less than there is room for by now, once the room was asked for anew. */
const fits = ({ asked: stored }: CallWish, { asked: wish }: CallWish, attempt: number): boolean => {
  const [a, b] = [stored.held, wish.held];
  const isSame = a.tokens === b.tokens && a.costMicros === b.costMicros;
  return isSame || (attempt > 1 && a.tokens <= b.tokens && a.costMicros <= b.costMicros);
};

/** The room of calls in a store that several processes share: what a call can use is a row before the call is made. */
export const createSharedRooms = ({ standing, rules, holds, unwritten, decideOn }: SharedRoomsDeps): CallRooms => {
  const known = new Map<string, Known<Stand, CallWish>>();

  const holdOf = ({ runId, counted, spent }: CallRequest, held: AskedHold['held']): AskedHold =>
    holds.asking({ runId, root: counted, isAdmission: false, held, spent });

  const verdicts = (
    stand: Stand,
    calls: readonly CallRequest[],
    given: readonly CallWish[],
  ): ReadonlyMap<CallRequest, Verdict<CallWish>> => {
    const asking = new Set(calls.map(({ runId }) => runId));
    const standingUses: StandingUse[] = stand.calls.map((use) => ({ ...use, isAdmission: false }));
    // What those who ask have used was left out of the read.
    for (const call of calls) standingUses.push(standingUse(holdOf(call, noUse)));
    for (const { asked } of given) if (!asking.has(asked.runId)) standingUses.push(standingUse(asked));
    const take = (call: CallRequest, held: AskedHold['held'], terms: CallTerms): CallWish => {
      const asked = holdOf(call, held);
      standingUses.push({ ...standingUse(asked), spent: noUse });
      return { asked, hold: terms.isFree ? null : asked, terms };
    };
    const view = { rules: stand.rules, counters: stand.counters, holds: () => standingUses };
    const decide = decideOn(view, take);
    const verdictOf = (call: CallRequest): Verdict<CallWish> => {
      try {
        const wish = decide(call);
        return wish === null ? null : { wish };
      } catch (error) {
        return { error };
      }
    };
    return new Map(calls.map((call) => [call, verdictOf(call)]));
  };

  const ask = async (tenantId: string, asked: readonly AskedHold[], calls: readonly CallRequest[]) => {
    const all = (await rules.read(tenantId)) ?? [];
    if (asked.length === 0 && !calls.some(({ counted }) => limitingUse(all, counted.agentName).length > 0))
      return { standing: { rules: all, counters: [], calls: [] }, stored: new Set<string>() };
    const { starts, names } = scopesOf(calls.map(({ counted }) => counted));
    const runIds = calls.map(({ runId }) => runId);
    const reading = standing.calls(tenantId, starts, names, runIds);
    const { standing: read, stored } = await holds.ask(tenantId, 'calls', asked, reading);
    const counters = unwritten.added(read.counters, tenantId, starts, names);
    return { standing: { rules: all, counters, calls: read.calls }, stored };
  };

  return {
    async look(tenantId, calls) {
      const before = known.get(tenantId);
      const { known: after, final } = await agreedHolds<CallRequest, Stand, CallWish>(
        {
          verdicts,
          ask: (asked, waiting) => ask(tenantId, asked, waiting),
          fits,
          give: ({ asked, hold }) => (hold === null ? holds.giveFree(asked) : holds.give(asked)),
          drop: holds.drop,
        },
        calls,
        before,
      );
      if (before === undefined && known.size >= mostKnown) known.clear();
      known.set(tenantId, after);
      return (call) => {
        const verdict = final.get(call);
        if (verdict === undefined) return null;
        if ('error' in verdict) throw verdict.error;
        return verdict.wish.terms;
      };
    },
    free: ({ runId, spent }, root) =>
      holds.giveFree(holds.asking({ runId, root, isAdmission: false, held: anyUse, spent })),
    used: holds.used,
    unheardMs,
  };
};
