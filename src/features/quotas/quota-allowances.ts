import type { Clock } from '../../core/clock.ts';
import type { BoundedCall, CallAllowance, CallAllowances } from '../../engine/control/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { type CountedRoot, monthOf } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { longestWaitMs, retryAfterMs } from './quota-admission.ts';
import type { QuotaHolds } from './quota-holds.store.ts';
import { anyUse, limitingUse, mostCost, type Room, roomsFor } from './quota-room.rules.ts';
import { ownerOf } from './quotas.rules.ts';
import type { QuotaRule, QuotaRules, QuotaStore } from './quotas.store.ts';
import { createTenantLines, type Decide } from './tenant-lines.ts';

export interface AllowancesDeps {
  readonly store: Pick<QuotaStore, 'usageOf'>;
  readonly rules: QuotaRules;
  readonly holds: QuotaHolds;
  /** Where the tree of a root counts. */
  countedRoot(tenantId: string, root: BoundedCall['root']): Promise<CountedRoot>;
  readonly periods: PeriodClock;
  readonly clock: Clock;
}

interface Asked extends BoundedCall {
  readonly counted: CountedRoot;
  readonly until: number;
}

const unreadable = (cause: unknown): RunFailure =>
  new RunFailure('Infrastructure', 'quotas_unreadable', 'The quotas of a model call cannot be read.', {
    cause,
    retryAfterMs,
  });

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

/**
 * Gives model calls a part of what the rules leave, so that none can pass a limit: what a call can use at most is held
 * before it is made, and what it has not used is free after it. Counters have what ended runs used; what runs in
 * progress have used stands in their holds until their rows are closed, also between two attempts of one run.
 */
export const createQuotaAllowances = ({
  store,
  rules,
  holds,
  countedRoot,
  periods,
  clock,
}: AllowancesDeps): CallAllowances & { wake(tenantId: string | null): void } => {
  const take = (
    runId: string,
    root: CountedRoot,
    held: { readonly tokens: number; readonly costMicros: number },
    answer: Omit<CallAllowance, 'settle'>,
  ): CallAllowance => {
    holds.take({ runId, root, isAdmission: false, held }, !answer.isFree);
    return { ...answer, settle: (use) => holds.used(runId, use) };
  };

  const takeBounded = (call: Asked, outputTokens: number, isCut: boolean): CallAllowance => {
    const held = { tokens: call.inputTokens + outputTokens, costMicros: mostCost(call, outputTokens) };
    const cap = Number.isFinite(outputTokens) ? outputTokens : null;
    return take(call.runId, call.counted, held, { outputTokens: cap, isCut, isFree: false });
  };

  const takeFree = (runId: string, root: CountedRoot): CallAllowance =>
    take(runId, root, anyUse, { outputTokens: null, isCut: false, isFree: true });

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

  const read = async (tenantId: string, roots: readonly CountedRoot[]) => {
    const starts = [...new Set(roots.flatMap(({ day }) => [day, monthOf(day)]))];
    const names = ['', ...new Set(roots.map(({ agentName }) => agentName))];
    const limiting = (await rules.read(tenantId)) ?? [];
    const isLimited = roots.some(({ agentName }) => limitingUse(limiting, agentName).length > 0);
    const rows = isLimited ? await store.usageOf(tenantId, starts, names) : [];
    return { limiting, rows };
  };

  const look = async (tenantId: string, calls: readonly Asked[]): Promise<Decide<Asked, CallAllowance>> => {
    const roots = calls.map(({ counted }) => counted);
    const { limiting, rows } = await holds.readSteadily(tenantId, () => read(tenantId, roots));
    // Rules whose room calls earlier in line wait for: nobody overtakes those calls.
    const awaited = new Set<QuotaRule>();
    return (call) => {
      call.signal.throwIfAborted();
      const own = limitingUse(limiting, call.counted.agentName);
      const rooms = roomsFor(call, call.counted, own, rows, () => holds.of(tenantId));
      const [room] = rooms;
      if (room === undefined) return takeFree(call.runId, call.counted);
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

  const lines = createTenantLines<Asked, CallAllowance>({
    look,
    unreadable: (_tenantId, error) => () => {
      throw unreadable(error);
    },
    dueAt: ({ until }) => until,
    clock,
  });

  return {
    apply(tenantId, agentName) {
      const own = rules.known(tenantId);
      return own === undefined || limitingUse(own, agentName).length > 0;
    },
    async allow(call) {
      const counted = await countedRoot(call.tenantId, call.root);
      return lines.join(call.tenantId, { ...call, counted, until: clock.now() + longestWaitMs });
    },
    async free({ tenantId, runId, root }) {
      return takeFree(runId, await countedRoot(tenantId, root));
    },
    wake: lines.wake,
  };
};
