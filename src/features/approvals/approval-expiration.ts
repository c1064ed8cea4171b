import type { Clock, Timer } from '../../core/clock.ts';
import { isDecryptionFailure } from '../../core/content-cipher.ts';
import type { BackgroundService, HeldLease } from '../../scheduler/background-service.ts';
import type { ApprovalDecisions } from './approval-decisions.ts';
import type { ApprovalStore } from './approvals.store.ts';

export interface ApprovalExpirationDeps {
  readonly store: ApprovalStore;
  readonly decisions: ApprovalDecisions;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly clock: Clock;
  readonly settings: {
    readonly enabled: boolean;
    /** False: nothing can go on now. */
    readonly queues: boolean;
    readonly scanIntervalMs: number;
    readonly maxPerScan: number;
  };
}

/** Stores that a request has expired; readers see it at once, the run goes on when it is stored. */
export const createApprovalExpiration = (deps: ApprovalExpirationDeps): BackgroundService => {
  const { store, decisions, log, clock, settings } = deps;
  let timer: Timer | null = null;
  let scanning: Promise<unknown> = Promise.resolve();
  let started = false;

  const scan = async (mayAct: () => boolean, held: () => HeldLease | null): Promise<void> => {
    if (!mayAct()) return;
    const lease = held();
    const lapsed = await store.lapsed(clock.now(), settings.maxPerScan);
    // A call that lapsed while the queue was off left its run where a decision cannot reach it any more.
    const settled = settings.queues ? await store.settled(settings.maxPerScan) : [];
    for (const runId of new Set([...lapsed, ...settled].map((row) => row.run_id))) {
      if (!started || !mayAct()) break;
      try {
        await decisions.settle(runId, lease);
      } catch (error) {
        // What one pause goes on with cannot be read; the others are not held up.
        if (!isDecryptionFailure(error)) throw error;
        log.error({ runId, error }, 'A decided pause cannot go on');
      }
    }
  };

  const next = (mayAct: () => boolean, held: () => HeldLease | null): void => {
    if (!started) return;
    timer = clock
      .after(settings.scanIntervalMs, () => {
        scanning = scan(mayAct, held)
          .catch((error: unknown) => log.error({ error }, 'Expired approvals could not be stored'))
          .finally(() => next(mayAct, held));
        return scanning;
      })
      .unref();
  };

  return {
    start(mayAct, held) {
      if (!settings.enabled || started) return;
      started = true;
      next(mayAct, held);
    },
    async stop() {
      started = false;
      timer?.stop();
      await scanning;
    },
  };
};
