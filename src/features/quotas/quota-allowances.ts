import type { Clock } from '../../core/clock.ts';
import type { BoundedCall, CallAllowance, CallAllowances } from '../../engine/control/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { type CallRequest, type CallRooms, type CallTerms, freeTerms } from './call-decision.ts';
import type { CountedRoot } from './counted-roots.ts';
import { retryAfterMs } from './place-decision.ts';
import { longestWaitMs } from './quota-admission.ts';
import { limitingUse } from './quota-room.rules.ts';
import type { QuotaRules } from './quotas.store.ts';
import { createTenantLines } from './tenant-lines.ts';

export interface AllowancesDeps {
  readonly rules: Pick<QuotaRules, 'known'>;
  readonly rooms: CallRooms;
  /** Where the tree of a root counts. */
  countedRoot(tenantId: string, root: BoundedCall['root']): Promise<CountedRoot>;
  readonly clock: Clock;
}

const unreadable = (cause: unknown): RunFailure =>
  new RunFailure('Infrastructure', 'quotas_unreadable', 'The quotas of a model call cannot be read.', {
    cause,
    retryAfterMs,
  });

/**
 * Gives model calls a part of what the rules leave, so that none can pass a limit: what a call can use at most is held
 * before it is made, and what it has not used is free after it. Counters have what ended runs used; what runs in
 * progress have used stands in their holds until their rows are closed, also between two attempts of one run.
 */
export const createQuotaAllowances = ({
  rules,
  rooms,
  countedRoot,
  clock,
}: AllowancesDeps): CallAllowances & { wake(tenantId: string | null): void } => {
  const allowance = (runId: string, terms: CallTerms): CallAllowance => ({
    ...terms,
    settle: (use) => rooms.used(runId, use),
  });

  const lines = createTenantLines<CallRequest, CallTerms>({
    look: rooms.look,
    unreadable: (_tenantId, error) => () => {
      throw unreadable(error);
    },
    dueAt: ({ until }) => (rooms.unheardMs === null ? until : Math.min(until, clock.now() + rooms.unheardMs)),
    clock,
  });

  return {
    apply(tenantId, agentName) {
      const own = rules.known(tenantId);
      return own === undefined || limitingUse(own, agentName).length > 0;
    },
    async allow(call) {
      const counted = await countedRoot(call.tenantId, call.root);
      const terms = await lines.join(call.tenantId, { ...call, counted, until: clock.now() + longestWaitMs });
      return allowance(call.runId, terms);
    },
    async free(call) {
      rooms.free(call, await countedRoot(call.tenantId, call.root));
      return allowance(call.runId, freeTerms);
    },
    wake: lines.wake,
  };
};
