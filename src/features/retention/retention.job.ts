import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { type JobHandler, type JobResult, LeaseLostError, type QueuedJob } from '../../scheduler/job-queue.ts';
import { effectivePolicies, type RetentionDefaults } from './effective-policy.rules.ts';
import type { RetentionStore } from './retention-policies.store.ts';
import type { Sweep, SweepOrder, SweepOutcome } from './sweep.ts';
import { giveSpaceBack } from './sweep-space.ts';

export const retentionKey = 'acp.retention';

/** What a job of this key carries; null: queued by a schedule of its tenant. */
export interface RetentionPayload {
  readonly trigger: 'Schedule' | 'Manual';
  /** True for the hourly sweep, which is one job for the whole store. */
  readonly everyTenant: boolean;
}

export interface RetentionJobDeps {
  readonly storage: Pick<Storage, 'dialect'>;
  readonly store: RetentionStore;
  readonly tenants: () => Promise<readonly string[]>;
  readonly sweep: Sweep;
  readonly defaults: RetentionDefaults;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

/** One sweep at a time in a process: two at once would only take turns at the one writer of the store. */
export const retentionJob = (deps: RetentionJobDeps): JobHandler => {
  let before: Promise<unknown> = Promise.resolve();

  const sweepAll = async (
    job: QueuedJob,
    { trigger, everyTenant }: RetentionPayload,
    stop: SweepOrder['stop'],
  ): Promise<SweepOutcome[]> => {
    const outcomes: SweepOutcome[] = [];
    for (const tenantId of everyTenant ? await deps.tenants() : [job.tenantId])
      for (const [target, policy] of effectivePolicies(await deps.store.policies(tenantId), deps.defaults)) {
        const isAsked = job.targetName === '*' ? policy.enabled : job.targetName === target;
        if (!isAsked || policy.source === 'None' || stop() !== null) continue;
        outcomes.push(
          await deps.sweep({ tenantId, target, policy, jobId: job.id, trigger, trace: job.trace ?? null, stop }),
        );
      }
    return outcomes;
  };

  const work = async (job: QueuedJob, signal: AbortSignal): Promise<JobResult> => {
    const payload = (job.payload ?? { trigger: 'Schedule', everyTenant: false }) as RetentionPayload;
    const stop: SweepOrder['stop'] = () => {
      // A lease that was lost says that another worker has the job, which is nobody's wish to end it.
      if (deps.lifecycle.draining || signal.reason instanceof LeaseLostError) return 'released';
      return signal.aborted ? 'canceled' : null;
    };
    // Another worker had it, and has ended or has lost it.
    if (job.attempt > 1) await deps.store.interrupted(deps.now(), job.id);
    const outcomes = await sweepAll(job, payload, stop);
    if (outcomes.some(({ deletedRows }) => deletedRows > 0))
      await giveSpaceBack(deps.storage.dialect, () => stop() !== null).catch((error: unknown) =>
        deps.log.warn({ error }, 'The space of deleted rows could not be given back'),
      );
    const reason = stop();
    if (reason !== null) return { status: reason === 'canceled' ? 'Canceled' : 'Released' };
    const failed = outcomes.filter(({ error }) => error !== null);
    if (failed.length === 0 || failed.length < outcomes.length) return { status: 'Completed' };
    return {
      status: 'Failed',
      code: failed[0]?.error ?? 'store-failed',
      message: 'Every target failed; see the history.',
    };
  };

  return (job, signal) => {
    const result = before.then(() => work(job, signal));
    before = result.catch(() => undefined);
    return result;
  };
};
