import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { type JobHandler, type JobResult, LeaseLostError, type QueuedJob } from '../../scheduler/job-queue.ts';
import { type EffectivePolicy, effectivePolicies, noPolicy, type RetentionDefaults } from './effective-policy.rules.ts';
import type { RetentionTarget } from './retention.schema.ts';
import type { RetentionStore } from './retention-policies.store.ts';
import { type Sweep, type SweepOrder, type SweepOutcome, sweepRun } from './sweep.ts';
import { giveSpaceBack } from './sweep-space.ts';
import type { BegunSweep, PlannedSweep, WholeSweep } from './sweep-whole.ts';

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
  readonly wholeSweep: WholeSweep;
  readonly defaults: RetentionDefaults;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn' | 'info'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** One sweep at a time in a process: two at once would only take turns at the one writer of the store. */
export const retentionJob = (deps: RetentionJobDeps): JobHandler => {
  let before: Promise<unknown> = Promise.resolve();

  type Policies = readonly (readonly [RetentionTarget, EffectivePolicy])[];

  /** What a job asks for of a tenant's targets. */
  const askedOf = async (job: QueuedJob, tenantId: string): Promise<Policies> => {
    const policies = effectivePolicies(await deps.store.policies(tenantId), deps.defaults);
    return [...policies].filter(
      ([target, policy]) =>
        policy.source !== 'None' && (job.targetName === '*' ? policy.enabled : job.targetName === target),
    );
  };

  /** By targets, the sweeps of tenants that whole partitions have gone of; none where no store lays its rows apart. */
  const sweepWhole = async (
    job: QueuedJob,
    { trigger }: RetentionPayload,
    tenants: readonly string[],
    stop: SweepOrder['stop'],
  ): Promise<ReadonlyMap<RetentionTarget, ReadonlyMap<string, BegunSweep>>> => {
    const begun = new Map<RetentionTarget, ReadonlyMap<string, BegunSweep>>();
    if (deps.storage.dialect.partitions === undefined) return begun;
    const planned: PlannedSweep[] = [];
    for (const tenantId of tenants)
      for (const [target, policy] of await askedOf(job, tenantId))
        planned.push({ tenantId, target, policy, run: sweepRun({ tenantId, target, jobId: job.id, trigger }, deps) });
    for (const [target, sweeps] of Map.groupBy(planned, (sweep) => sweep.target))
      if (stop() === null) begun.set(target, await deps.wholeSweep(target, sweeps, () => stop() !== null));
    return begun;
  };

  const sweepAll = async (
    job: QueuedJob,
    payload: RetentionPayload,
    stop: SweepOrder['stop'],
  ): Promise<SweepOutcome[]> => {
    const outcomes: SweepOutcome[] = [];
    const tenants = payload.everyTenant ? await deps.tenants() : [job.tenantId];
    const whole = await sweepWhole(job, payload, tenants, stop);
    const { trigger } = payload;
    for (const tenantId of tenants) {
      const begunHere = [...whole].filter(([, sweeps]) => sweeps.has(tenantId));
      // One that has begun is ended, whatever its policy has become since.
      const asked = new Map([
        ...begunHere.map(([target]) => [target, noPolicy] as const),
        ...(await askedOf(job, tenantId)),
      ]);
      for (const [target, policy] of asked) {
        const begun = whole.get(target)?.get(tenantId);
        if (begun === undefined && stop() !== null) continue;
        const order = { tenantId, target, policy, jobId: job.id, trigger, trace: job.trace ?? null, stop };
        outcomes.push(await deps.sweep(begun === undefined ? order : { ...order, begun }));
      }
    }
    return outcomes;
  };

  /** Partitions that nothing is in any more, whoever emptied them. */
  const dropEmpty = async (): Promise<void> => {
    try {
      const dropped = await deps.storage.dialect.partitions?.dropEmpty(deps.now());
      if (dropped !== undefined && dropped.length > 0)
        deps.log.info({ partitions: dropped }, 'Empty partitions of a time that is over were removed');
    } catch (error) {
      deps.log.warn({ error }, 'Empty partitions could not be removed');
    }
  };

  const work = async (job: QueuedJob, signal: AbortSignal): Promise<JobResult> => {
    const payload = (job.payload ?? { trigger: 'Schedule', everyTenant: false }) as RetentionPayload;
    const stop: SweepOrder['stop'] = () => {
      // A lease that was lost says that another worker has the job, which is nobody's wish to end it.
      if (deps.lifecycle.draining || signal.reason instanceof LeaseLostError) return 'released';
      return signal.aborted ? 'canceled' : null;
    };
    // Another worker had it, and has ended or has lost it; or it has waited for the store since.
    if (job.attempt > 1 || job.waitedMs === null) await deps.store.interrupted(deps.now(), job.id);
    const outcomes = await sweepAll(job, payload, stop);
    if (outcomes.some(({ deletedRows }) => deletedRows > 0))
      await giveSpaceBack(deps.storage.dialect, () => stop() !== null).catch((error: unknown) =>
        deps.log.warn({ error }, 'The space of deleted rows could not be given back'),
      );
    const reason = stop();
    if (reason === null) await dropEmpty();
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
