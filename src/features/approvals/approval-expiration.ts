import type { ApprovalDecisions } from './approval-decisions.ts';
import type { ApprovalStore } from './approvals.store.ts';

export interface ApprovalExpiration {
  start(): void;
  /** One search; resolves with the number of runs it looked at. */
  scan(): Promise<number>;
  /** Stops the searches and waits for the one in progress. */
  close(): Promise<void>;
}

export interface ApprovalExpirationDeps {
  readonly store: ApprovalStore;
  readonly decisions: ApprovalDecisions;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly now: () => number;
  readonly settings: {
    readonly enabled: boolean;
    /** False: nothing can go on now. */
    readonly queues: boolean;
    readonly scanIntervalMs: number;
    readonly maxPerScan: number;
  };
}

/** Stores that a request has expired; readers see it at once, the run goes on when it is stored. */
export const createApprovalExpiration = (deps: ApprovalExpirationDeps): ApprovalExpiration => {
  const { store, decisions, log, now, settings } = deps;
  let timer: NodeJS.Timeout | null = null;
  let scanning: Promise<unknown> = Promise.resolve();
  let closed = false;

  const scan = async (): Promise<number> => {
    const lapsed = await store.lapsed(now(), settings.maxPerScan);
    // A call that lapsed while the queue was off left its run where a decision cannot reach it any more.
    const settled = settings.queues ? await store.settled(settings.maxPerScan) : [];
    const runs = [...new Set([...lapsed, ...settled].map((row) => row.run_id))];
    for (const runId of runs) {
      if (closed) break;
      await decisions.settle(runId);
    }
    return runs.length;
  };

  const next = (): void => {
    if (closed) return;
    timer = setTimeout(() => {
      scanning = scan()
        .catch((error: unknown) => log.error({ error }, 'Expired approvals could not be stored'))
        .finally(next);
    }, settings.scanIntervalMs);
    timer.unref();
  };

  return {
    start() {
      if (settings.enabled && timer === null) next();
    },
    scan,
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      await scanning;
    },
  };
};
