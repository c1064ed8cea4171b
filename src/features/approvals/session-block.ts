import type { ApprovalDecisions } from './approval-decisions.ts';
import type { ApprovalStore } from './approvals.store.ts';

export interface SessionBlockDeps {
  readonly approvals: Pick<ApprovalStore, 'pendingUntil' | 'unfinished'>;
  readonly decisions: Pick<ApprovalDecisions, 'settle'>;
  /** False: nothing that was decided can go on now, so it holds nobody up. */
  readonly queues: boolean;
  readonly now: () => number;
}

/**
 * Until when a session waits for its mailbox at most: a person is asked, or what was decided is about to go on. Infinity
 * without an end; null when it does not wait. Queues a continuation that became due because the last call lapsed: the
 * scan that would do it may be a while off, and no other turn may come between.
 */
export const sessionBlock =
  ({ approvals, decisions, queues, now }: SessionBlockDeps) =>
  async (tenantId: string, sessionId: string): Promise<number | null> => {
    const pending = await approvals.pendingUntil(tenantId, sessionId, now());
    if (pending !== null) return pending;
    const unfinished = await approvals.unfinished(tenantId, sessionId);
    if (unfinished === undefined || (unfinished.state === 'Waiting' && !queues)) return null;
    if (unfinished.state === 'Waiting') await decisions.settle(unfinished.run_id);
    return Number.POSITIVE_INFINITY;
  };
