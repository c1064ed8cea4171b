import type { Clock } from '../../../src/core/clock.ts';
import { newId } from '../../../src/core/ids.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import type { OpenedRun } from '../../../src/engine/record/index.ts';
import { createIdempotencyKeys, type IdempotencyKeys } from '../../../src/features/idempotency/idempotency.store.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import type { JobChoice, JobLease } from '../../../src/scheduler/job-queue.ts';

// What another process on the same store does, as a service sees it: `storage` is that of `app.store.open()`.

export const anyJob: JobChoice = { only: null, full: [], except: [], dueSince: null };

const openedRun = (id: string, more: Partial<OpenedRun>): OpenedRun => ({
  id,
  tenantId: 'default',
  agentName: 'helper',
  agentVersion: null,
  status: 'Running',
  modelProvider: null,
  modelId: null,
  isStreaming: true,
  jobId: null,
  sessionId: null,
  userId: null,
  ownerId: null,
  labels: null,
  parentRunId: null,
  rootRunId: null,
  continuedFromRunId: null,
  depth: 0,
  createdAt: 1,
  startedAt: 1,
  input: null,
  ...more,
});

/** Begins a run of its own. */
export const opensRun = async (storage: RootStorage, id: string, more: Partial<OpenedRun> = {}): Promise<void> =>
  void (await storage.write(storage.stores(createRunJournal(null, null)).opened(openedRun(id, more))));

/** Begins a run that is in line. */
export const beginsRun = async (storage: RootStorage, id: string): Promise<void> =>
  void (await storage.write(storage.stores(createRunJournal(null, null)).begun(openedRun(id, {}))));

/** Takes jobs that are in line, and begins them; what it holds then. */
export const beginsJobs = async (
  storage: RootStorage,
  owner: string,
  now: number,
  leaseUntil: number,
): Promise<readonly JobLease[]> => {
  const jobs = storage.stores(jobStore);
  const taken = await jobs.claim(owner, now, leaseUntil, 10, anyJob);
  for (const job of taken) await jobs.begin(job);
  return taken;
};

/** Keys of a process that renews none: it is suspended, or gone. */
export const idleKeys = (storage: RootStorage, clock: Pick<Clock, 'now'>): IdempotencyKeys => {
  const never = { stop: () => undefined, unref: () => never };
  return storage.stores(
    createIdempotencyKeys({
      keptMs: async () => null,
      clock: { now: clock.now, elapsed: clock.now, after: () => never, every: () => never },
      log: { error: () => undefined },
      newId,
    }),
  );
};
