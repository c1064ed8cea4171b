import { RunFailure } from '../../engine/run-failure.ts';
import type { BoundedCall, CallAllowance, CallAllowances } from '../../engine/run-quotas.ts';
import { type CountedRoot, monthOf } from './counted-roots.ts';
import type { PeriodClock } from './period-clock.ts';
import { addedUse, type Hold, limitingUse, mostCost, noUse, roomFor } from './quota-room.rules.ts';
import type { QuotaRules } from './quota-rules.ts';
import type { QuotaRule, QuotaStore } from './quotas.store.ts';

export interface AllowancesDeps {
  readonly store: Pick<QuotaStore, 'usageOf'>;
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

// As the admission of runs waits.
const longestWaitMs = 30_000;
const pollMs = 100;
const takenRetryAfterMs = 5000;

/**
 * Gives model calls a part of what the rules leave, so that none can pass a limit: what a call can use at most is taken
 * before it is made, and what it has not used comes back after it. Counters have what ended runs used; what runs in
 * progress have used stands here until their rows are closed.
 */
export const createQuotaAllowances = ({
  store,
  rules,
  countedRoot,
  clock,
  now,
}: AllowancesDeps): CallAllowances & { ended(tenantId: string, runId: string): void } => {
  const tenants = new Map<string, TenantHolds>();

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
    call: BoundedCall,
    root: CountedRoot,
    outputTokens: number,
    isCut: boolean,
  ): CallAllowance => {
    const hold = holds.runs.get(call.runId) ?? { root, spent: noUse, held: noUse };
    hold.held = { tokens: call.inputTokens + outputTokens, costMicros: mostCost(call, outputTokens) };
    holds.runs.set(call.runId, hold);
    return {
      outputTokens: Number.isFinite(outputTokens) ? outputTokens : null,
      isCut,
      settle(use) {
        hold.held = noUse;
        hold.spent = addedUse(hold.spent, use);
        wake(holds);
      },
    };
  };

  const refusal = (rule: QuotaRule, call: BoundedCall, isTaken: boolean): RunFailure => {
    const whose = rule.agentName === '' ? 'the tenant' : `agent '${rule.agentName}'`;
    const { dayEndsAt, monthEndsAt } = clock.current();
    const resetsAt = rule.period === 'Daily' ? dayEndsAt : monthEndsAt;
    const left = isTaken ? 'is held by other calls' : 'does not suffice';
    return new RunFailure(
      'QuotaExceeded',
      'quota_exceeded',
      `What is left of the ${rule.period.toLowerCase()} quota of ${whose} ${left}: the next model call sends up to ${call.inputTokens} tokens.`,
      { retryAfterMs: isTaken ? takenRetryAfterMs : Math.max(resetsAt - now(), 1) },
    );
  };

  const decide = async (holds: TenantHolds, call: BoundedCall, root: CountedRoot): Promise<CallAllowance | null> => {
    const { tenantId, signal } = call;
    const wish = call.outputTokens ?? Number.POSITIVE_INFINITY;
    const until = now() + longestWaitMs;
    for (;;) {
      signal.throwIfAborted();
      const own = limitingUse(await rules.of(tenantId), root.agentName);
      const { booked } = holds;
      const rows = await store.usageOf(tenantId, [root.day, monthOf(root.day)], ['', root.agentName]);
      // What a run had used has left this list, and may not be in the counters as they were read.
      if (holds.booked !== booked) continue;
      const room = roomFor(call, root, own, rows, () => holds.runs.values());
      if (room === null) return null;
      if (room.now >= wish) return take(holds, call, root, wish, false);
      if (room.later > room.now && room.later >= 1 && now() < until) await pause(holds, signal);
      else if (room.now >= 1) return take(holds, call, root, room.now, true);
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
    ended(tenantId, runId) {
      const holds = tenants.get(tenantId);
      if (holds?.runs.delete(runId) !== true) return;
      holds.booked += 1;
      wake(holds);
      forget(tenantId, holds);
    },
  };
};
