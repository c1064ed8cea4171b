import type { Config } from '../core/config/schema.ts';
import { endsWithin } from '../core/time-limit.ts';
import type { RunEngine } from '../engine/lifecycle/index.ts';
import type { JobWorker } from '../scheduler/job-worker.ts';

interface Part {
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
  /** In the order in which they start and close. */
  readonly parts: readonly Part[];
}

/** Start and end of a service, in order over its parts. */
export const createLifecycle = ({ config, lifecycle, engine, worker, works, parts }: LifecycleDeps) => {
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
