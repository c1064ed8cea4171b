import type { Logger } from '../../core/logger.ts';
import type { RetentionRunRow } from '../../db/tables/retention.ts';
import { cutoffOf, type EffectivePolicy } from './effective-policy.rules.ts';
import type { RetentionTarget } from './retention.schema.ts';
import type { RetentionStore } from './retention-policies.store.ts';
import type { PastStretch, SweepPartitions, TenantBound } from './sweep-partitions.store.ts';
import { type SweepBound, type SweepUnits, sweptUntil } from './sweep-units.store.ts';

/** A sweep of one target of one tenant, before anything is deleted. */
export interface PlannedSweep {
  readonly tenantId: string;
  readonly target: RetentionTarget;
  readonly policy: EffectivePolicy;
  readonly run: RetentionRunRow;
}

/** What went before the sweep looks at single rows; its run is in the history. */
export interface BegunSweep {
  readonly run: RetentionRunRow;
  readonly deletedRows: number;
}

export interface WholeSweepDeps {
  readonly store: RetentionStore;
  readonly units: SweepUnits;
  readonly partitions: SweepPartitions;
  readonly log: Pick<Logger, 'error' | 'info'>;
  readonly now: () => number;
}

// Each adds six parameters to a statement, of which there may be 65,535; with more tenants rows go one by one.
const mostTenants = 5000;

interface BoundSweep extends TenantBound {
  readonly run: RetentionRunRow;
  readonly bound: SweepBound;
}

/**
 * Removes what lies in partitions of which every row goes by the policy of its tenant, at one stroke. What is archived first, and
 * what lies beside a row that stays, is left to the sweeps of the tenants. Resolves with the sweeps that it has begun.
 */
export const createWholeSweep = ({ store, units, partitions, log, now }: WholeSweepDeps) => {
  /** As a sweep begins: its entry in the history, and the mark that says that what is missing is no damage. */
  const begin = async (
    target: RetentionTarget,
    { tenantId, run, bound }: BoundSweep,
    begun: Map<string, BegunSweep>,
  ): Promise<void> => {
    if (begun.has(tenantId)) return;
    await store.start(run);
    begun.set(tenantId, { run, deletedRows: 0 });
    await store.mark(tenantId, target, sweptUntil(bound));
  };

  const emptyStretch = async (
    target: RetentionTarget,
    stretch: PastStretch,
    sweeps: readonly BoundSweep[],
    begun: Map<string, BegunSweep>,
  ): Promise<void> => {
    const present = new Set((await partitions.rows(target, stretch, sweeps)).map(({ tenantId }) => tenantId));
    // Rows that come later, of another tenant, stay.
    const concerned = sweeps.filter(({ tenantId }) => present.has(tenantId));
    if (concerned.length === 0 || (await partitions.stays(target, stretch, concerned))) return;
    for (const sweep of concerned) await begin(target, sweep, begun);
    const { counts, ...end } = await partitions.empty(target, stretch, concerned);
    const names = stretch.map(({ name }) => name);
    if (!end.isEmptied)
      return log.info({ partitions: names, why: end.why }, 'Partitions are not emptied as a whole now');
    for (const { tenantId, rows } of counts) {
      const sweep = begun.get(tenantId);
      if (sweep !== undefined) begun.set(tenantId, { ...sweep, deletedRows: sweep.deletedRows + rows });
    }
    log.info({ partitions: names, tenants: counts.length }, 'Partitions were emptied as a whole');
  };

  const boundsOf = async (
    target: RetentionTarget,
    planned: readonly PlannedSweep[],
  ): Promise<readonly BoundSweep[]> => {
    const bounds: BoundSweep[] = [];
    for (const { tenantId, policy, run } of planned) {
      if (!policy.enabled || policy.archive) continue;
      const rule = { cutoff: cutoffOf(policy, run.started_at), maxRows: policy.maxRows };
      bounds.push({ tenantId, sweepId: run.id, run, bound: await units.bound(target, tenantId, rule) });
    }
    return bounds;
  };

  return async (
    target: RetentionTarget,
    planned: readonly PlannedSweep[],
    stopped: () => boolean,
  ): Promise<ReadonlyMap<string, BegunSweep>> => {
    const begun = new Map<string, BegunSweep>();
    try {
      const stretches = planned.length > mostTenants ? [] : await partitions.past(target, now());
      if (stretches.length === 0) return begun;
      const sweeps = await boundsOf(target, planned);
      // Rows are no older than their ids: what lies behind all that goes is not looked at.
      const newest = Math.max(0, ...sweeps.map(({ bound }) => sweptUntil(bound)));
      for (const stretch of stretches)
        if (stretch[0].endsAt <= newest && !stopped()) await emptyStretch(target, stretch, sweeps, begun);
    } catch (error) {
      log.error({ target, error }, 'Partitions could not be emptied as a whole: their rows go one by one');
    }
    return begun;
  };
};

export type WholeSweep = ReturnType<typeof createWholeSweep>;
