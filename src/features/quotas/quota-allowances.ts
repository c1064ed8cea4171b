import type { BoundedCall, CallAllowance, CallAllowances, QuotaUse } from '../../engine/control/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { type CountedRoot, monthOf } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { longestWaitMs, retryAfterMs } from './quota-admission.ts';
import { anyUse, type Hold, limitingUse, mostCost, roomFor } from './quota-room.rules.ts';
import { addedUse, noUse } from './quota-use.ts';
import { ownerOf } from './quotas.rules.ts';
import type { QuotaRule, QuotaRules, QuotaStore } from './quotas.store.ts';
import type { UnfinishedUse } from './unfinished-use.store.ts';

export interface AllowancesDeps {
  readonly store: Pick<QuotaStore, 'usageOf'> & UnfinishedUse;
  readonly rules: QuotaRules;
  /** Where the tree of a root counts. */
  countedRoot(tenantId: string, root: BoundedCall['root']): Promise<CountedRoot>;
  readonly clock: PeriodClock;
  readonly now: () => number;
}

interface TenantHolds {
  readonly runs: Map<string, Hold>;
  /** How often what a run had used went to the counters. */
  booked: number;
  readonly waiting: Set<() => void>;
  /** Calls that are being decided on. */
  asking: number;
}

// Runs that are closed where nobody tells of it are found by looking.
const pollMs = 100;

const unreadable = (cause: unknown): never => {
  throw new RunFailure('Infrastructure', 'quotas_unreadable', 'The quotas of a model call cannot be read.', {
    cause,
    retryAfterMs,
  });
};

/**
 * Gives model calls a part of what the rules leave, so that none can pass a limit: what a call can use at most is taken
 * before it is made, and what it has not used comes back after it. Counters have what ended runs used; what runs in
 * progress have used stands here until their rows are closed, also between two attempts of one run.
 */
export const createQuotaAllowances = ({
  store,
  rules,
  countedRoot,
  clock,
  now,
}: AllowancesDeps): CallAllowances & { ended(tenantId: string, runId: string, isBooked: boolean): void } => {
  const tenants = new Map<string, TenantHolds>();
  let restored: Promise<void> | null = null;

  const holdsOf = (tenantId: string): TenantHolds => {
    let holds = tenants.get(tenantId);
    if (holds === undefined) {
      holds = { runs: new Map(), booked: 0, waiting: new Set(), asking: 0 };
      tenants.set(tenantId, holds);
    }
    return holds;
  };

  const wake = ({ waiting }: TenantHolds): void => {
    for (const go of waiting) go();
    waiting.clear();
  };

  const pause = (holds: TenantHolds, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const go = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', go);
        holds.waiting.delete(go);
        resolve();
      };
      const timer = setTimeout(go, pollMs);
      signal.addEventListener('abort', go, { once: true });
      holds.waiting.add(go);
    });

  const take = (
    holds: TenantHolds,
    runId: string,
    root: CountedRoot,
    held: QuotaUse,
    answer: Omit<CallAllowance, 'settle'>,
  ): CallAllowance => {
    const hold = holds.runs.get(runId) ?? { root, spent: noUse, held: noUse, isLeft: false };
    hold.held = held;
    hold.isLeft = false;
    holds.runs.set(runId, hold);
    return {
      ...answer,
      settle(use) {
        hold.held = noUse;
        hold.spent = addedUse(hold.spent, use);
        wake(holds);
      },
    };
  };

  const takeBounded = (
    holds: TenantHolds,
    call: BoundedCall,
    root: CountedRoot,
    outputTokens: number,
    isCut: boolean,
  ): CallAllowance => {
    const held = { tokens: call.inputTokens + outputTokens, costMicros: mostCost(call, outputTokens) };
    const cap = Number.isFinite(outputTokens) ? outputTokens : null;
    return take(holds, call.runId, root, held, { outputTokens: cap, isCut, isFree: false });
  };

  const takeFree = (holds: TenantHolds, runId: string, root: CountedRoot): CallAllowance =>
    take(holds, runId, root, anyUse, { outputTokens: null, isCut: false, isFree: true });

  /** What earlier attempts have used of runs that another process began, once. */
  const restore = (): Promise<void> => {
    restored ??= store.unfinished().then(
      (found) => {
        for (const { runId, root, use } of found) {
          const { runs } = holdsOf(root.tenantId);
          if (!runs.has(runId)) runs.set(runId, { root, spent: use, held: noUse, isLeft: true });
        }
      },
      (error: unknown) => {
        restored = null;
        throw error;
      },
    );
    return restored;
  };

  /** Lets go of runs that were closed where nobody tells of it, such as one that was canceled in line. */
  const dropClosed = async (tenantId: string, holds: TenantHolds): Promise<void> => {
    const { runs } = holds;
    const left = [...runs].flatMap(([id, { isLeft }]) => (isLeft ? [id] : []));
    if (left.length === 0) return;
    const open = await store.openAmong(tenantId, left);
    for (const id of left) {
      if (open.has(id) || runs.get(id)?.isLeft !== true) continue;
      runs.delete(id);
      // Whoever has read the counters before looks again.
      holds.booked += 1;
    }
  };

  const refusal = (rule: QuotaRule, call: BoundedCall, isTaken: boolean): RunFailure => {
    const { dayEndsAt, monthEndsAt } = clock.current();
    const resetsAt = rule.period === 'Daily' ? dayEndsAt : monthEndsAt;
    const left = isTaken ? 'is held by other calls' : 'does not suffice';
    return new RunFailure(
      'QuotaExceeded',
      'quota_exceeded',
      `What is left of the ${rule.period.toLowerCase()} quota of ${ownerOf(rule)} ${left}: the next model call sends up to ${call.inputTokens} tokens.`,
      { retryAfterMs: isTaken ? retryAfterMs : Math.max(resetsAt - now(), 1) },
    );
  };

  /** What is asked of the store; `booked`: what it was before the counters were read. */
  const look = async (holds: TenantHolds, { tenantId }: BoundedCall, root: CountedRoot) => {
    const own = limitingUse((await rules.read(tenantId)) ?? [], root.agentName);
    if (own.length === 0) return { own, booked: holds.booked, rows: [] };
    await restore();
    await dropClosed(tenantId, holds);
    const { booked } = holds;
    const rows = await store.usageOf(tenantId, [root.day, monthOf(root.day)], ['', root.agentName]);
    return { own, booked, rows };
  };

  const decide = async (holds: TenantHolds, call: BoundedCall, root: CountedRoot): Promise<CallAllowance> => {
    const wish = call.outputTokens ?? Number.POSITIVE_INFINITY;
    const until = now() + longestWaitMs;
    for (;;) {
      call.signal.throwIfAborted();
      const { own, booked, rows } = await look(holds, call, root).catch(unreadable);
      // What a run had used has left this list, and may not be in the counters as they were read.
      if (holds.booked !== booked) continue;
      // From here to the taking nothing is awaited: nobody else is given the same room.
      const room = roomFor(call, root, own, rows, () => holds.runs.values());
      if (room === null) return takeFree(holds, call.runId, root);
      if (room.now >= wish) return takeBounded(holds, call, root, wish, false);
      if (room.later > room.now && room.later >= 1 && now() < until) await pause(holds, call.signal);
      else if (room.now >= 1) return takeBounded(holds, call, root, room.now, true);
      else throw refusal(room.rule, call, room.later >= 1);
    }
  };

  const forget = (tenantId: string, holds: TenantHolds): void => {
    if (holds.runs.size === 0 && holds.asking === 0) tenants.delete(tenantId);
  };

  return {
    apply(tenantId, agentName) {
      const known = rules.known(tenantId);
      return known === undefined || limitingUse(known, agentName).length > 0;
    },
    async allow(call) {
      const { tenantId } = call;
      const holds = holdsOf(tenantId);
      holds.asking += 1;
      try {
        return await decide(holds, call, await countedRoot(tenantId, call.root));
      } finally {
        holds.asking -= 1;
        forget(tenantId, holds);
      }
    },
    async free({ tenantId, runId, root }) {
      const counted = await countedRoot(tenantId, root);
      return takeFree(holdsOf(tenantId), runId, counted);
    },
    ended(tenantId, runId, isBooked) {
      const holds = tenants.get(tenantId);
      const hold = holds?.runs.get(runId);
      if (holds === undefined || hold === undefined) return;
      if (!isBooked) {
        hold.isLeft = true;
        return;
      }
      holds.runs.delete(runId);
      holds.booked += 1;
      wake(holds);
      forget(tenantId, holds);
    },
  };
};
