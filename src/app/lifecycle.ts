import type { Config } from '../core/config/schema.ts';
import type { Logger } from '../core/logger.ts';
import { endsWithin } from '../core/time-limit.ts';
import type { RunEngine } from '../engine/lifecycle/index.ts';
import type { RecoveryReport } from '../features/runs/index.ts';
import type { JobWorker } from '../scheduler/job-worker.ts';

interface Part {
  recover?(): Promise<unknown>;
  /** Called once the service listens. */
  started?(): void;
  /** Called as the drain begins; awaited before its end. */
  draining?(): Promise<unknown>;
  close?(): unknown;
}

export interface LifecycleDeps {
  readonly config: Config;
  /** Seen by every feature that starts runs. */
  readonly lifecycle: { draining: boolean };
  readonly engine: Pick<RunEngine, 'idle' | 'list' | 'shutdown'>;
  readonly worker: Pick<JobWorker, 'start' | 'stop' | 'idle'>;
  /** False: this process takes no jobs. */
  readonly works: boolean;
  readonly runs: { recover(): Promise<RecoveryReport> };
  /** In the order in which they recover, start and close. */
  readonly parts: readonly Part[];
  readonly log: Pick<Logger, 'warn'>;
}

/** Start and end of a service, in order over its parts. */
export const createLifecycle = ({ config, lifecycle, engine, worker, works, runs, parts, log }: LifecycleDeps) => {
  const { Drain } = config.Service;

  const drain = async (): Promise<void> => {
    lifecycle.draining = true;
    worker.stop();
    const leaving = Promise.all(parts.map((part) => part.draining?.()));
    if (Drain.Enabled) await endsWithin(Drain.Timeout, engine.idle());
    await engine.shutdown();
    await worker.idle();
    await leaving;
  };

  return {
    /** Before the first request: nothing executes yet, so what is open belongs to a process that is gone. */
    async recover(readsOnly: boolean): Promise<void> {
      if (readsOnly) return;
      const report = await runs.recover();
      for (const part of parts) await part.recover?.();
      if (report.orphanedRuns > 0 || report.requeuedRuns > 0)
        log.warn({ ...report }, 'The last owner of the store ended without closing its runs');
    },
    started(): void {
      for (const part of parts) part.started?.();
      if (works) worker.start();
    },
    drain,
    /** What a drain that begins now waits for; 0 ms: it ends runs at once. */
    drainWait: () => ({ runs: engine.list().length, atMostMs: Drain.Enabled ? Drain.Timeout : 0 }),
    async close(): Promise<void> {
      await drain();
      for (const part of parts) await part.close?.();
    },
  };
};
