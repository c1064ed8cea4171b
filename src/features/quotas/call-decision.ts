import type { Clock } from '../../core/clock.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { BoundedCall, CallAllowance, QuotaUse } from '../../engine/control/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import type { CountedRoot } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { retryAfterMs } from './place-decision.ts';
import { anyUse, limitingUse, mostCost, type Room, roomsFor, type StandingUse } from './quota-room.rules.ts';
import { ownerOf } from './quotas.rules.ts';
import type { QuotaRule } from './quotas.store.ts';
import type { Decide } from './tenant-lines.ts';

export interface CallRequest extends BoundedCall {
  readonly counted: CountedRoot;
  readonly until: number;
}

/** What is said of a call that may be made. */
export type CallTerms = Omit<CallAllowance, 'settle'>;

/** Where the room of calls comes from: from the memory of the owner of a store, or from the rows that processes share. */
export interface CallRooms {
  /** One look at the store for all who wait. */
  look(tenantId: string, calls: readonly CallRequest[]): Promise<Decide<CallRequest, CallTerms>>;
  /** Of a call that no limit applies to. */
  free(call: Pick<BoundedCall, 'runId' | 'spent'>, counted: CountedRoot): void;
  /** A call is over: what it has not used is free. */
  used(runId: string, use: QuotaUse): void;
  /** How long at most those who wait are not told that another process has freed something; null: there is none. */
  readonly unheardMs: number | null;
}

export const freeTerms: CallTerms = { outputTokens: null, isCut: false, isFree: true };

/** What stands against the room of calls. */
export interface RoomView {
  readonly rules: readonly QuotaRule[];
  readonly counters: readonly QuotaUsageRow[];
  holds(): Iterable<StandingUse>;
}

const leastLater = (rooms: readonly Room[]): number => Math.min(...rooms.map(({ later }) => later));

/** The rules whose room a call waits for; none: it gains nothing by that, or does not fit even then. */
const scarceRules = (rooms: readonly Room[], wish: number, awaited: ReadonlySet<QuotaRule>): readonly QuotaRule[] => {
  const later = leastLater(rooms);
  const tightest = rooms[0]?.now ?? Number.POSITIVE_INFINITY;
  const gains = (tightest < wish && later > tightest) || rooms.some(({ rule }) => awaited.has(rule));
  return gains && later >= 1
    ? rooms.filter(({ rule, now }) => now < wish || awaited.has(rule)).map(({ rule }) => rule)
    : [];
};

/** Which call is made, with how long an answer, waits or fails; `take` holds what it can use. */
export const createCallDecision = (periods: PeriodClock, clock: Pick<Clock, 'now'>) => {
  const refusal = (rule: QuotaRule, call: BoundedCall, isTaken: boolean): RunFailure => {
    const { dayEndsAt, monthEndsAt } = periods.current();
    const resetsAt = rule.period === 'Daily' ? dayEndsAt : monthEndsAt;
    const left = isTaken ? 'is held by other calls' : 'does not suffice';
    return new RunFailure(
      'QuotaExceeded',
      'quota_exceeded',
      `What is left of the ${rule.period.toLowerCase()} quota of ${ownerOf(rule)} ${left}: the next model call sends up to ${call.inputTokens} tokens.`,
      { retryAfterMs: isTaken ? retryAfterMs : Math.max(resetsAt - clock.now(), 1) },
    );
  };

  return <T>(
    { rules, counters, holds }: RoomView,
    take: (call: CallRequest, held: QuotaUse, terms: CallTerms) => T,
  ): Decide<CallRequest, T> => {
    // Rules whose room calls earlier in line wait for: nobody overtakes those calls.
    const awaited = new Set<QuotaRule>();
    const takeBounded = (call: CallRequest, outputTokens: number, isCut: boolean): T => {
      const held = { tokens: call.inputTokens + outputTokens, costMicros: mostCost(call, outputTokens) };
      const cap = Number.isFinite(outputTokens) ? outputTokens : null;
      return take(call, held, { outputTokens: cap, isCut, isFree: false });
    };
    return (call) => {
      call.signal.throwIfAborted();
      const own = limitingUse(rules, call.counted.agentName);
      const rooms = roomsFor(call, call.counted, own, counters, holds);
      const [room] = rooms;
      if (room === undefined) return take(call, anyUse, freeTerms);
      const wish = call.outputTokens ?? Number.POSITIVE_INFINITY;
      const later = leastLater(rooms);
      const waitsFor = clock.now() < call.until ? scarceRules(rooms, wish, awaited) : [];
      for (const rule of waitsFor) awaited.add(rule);
      if (waitsFor.length > 0) return null;
      if (room.now >= wish) return takeBounded(call, wish, false);
      if (room.now >= 1) return takeBounded(call, room.now, true);
      throw refusal(room.rule, call, later >= 1);
    };
  };
};

export type CallDecision = ReturnType<typeof createCallDecision>;
