import { isDeepStrictEqual } from 'node:util';
import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import { clampPaging } from '../../contract/schema.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import { labelsOf, labelsText } from '../../core/labels.ts';
import type { RetentionPolicyRow, RetentionRunRow } from '../../db/tables/retention.ts';
import type { AuditLog } from '../audit/index.ts';
import {
  cutoffOf,
  type EffectivePolicy,
  effectivePolicies,
  type RetentionDefaults,
  targetOf,
} from './effective-policy.rules.ts';
import type { retentionOperations } from './retention.operations.ts';
import {
  type RetentionPolicy,
  type RetentionPreview,
  type RetentionRun,
  type RetentionTarget,
  retentionTargets,
} from './retention.schema.ts';
import { type RetentionStore, retentionStore } from './retention-policies.store.ts';
import type { RetentionQueue } from './retention-queue.ts';
import type { SweepUnits } from './sweep-units.store.ts';

export interface RetentionServiceDeps {
  readonly store: RetentionStore;
  readonly units: SweepUnits;
  readonly queue: Pick<RetentionQueue, 'manual'>;
  readonly defaults: RetentionDefaults;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  /** False: a store in memory. */
  readonly persistent: boolean;
  readonly schedulingEnabled: boolean;
  readonly lifecycle: { readonly draining: boolean };
  readonly now: () => number;
  readonly newId: () => string;
}

const toPolicy = (row: RetentionPolicyRow): RetentionPolicy => ({
  id: row.id,
  tenantId: row.tenant_id,
  target: row.target as RetentionTarget,
  maxAgeDays: row.max_age_days,
  maxRows: row.max_rows,
  archive: row.archive === 1,
  enabled: row.enabled === 1,
  labels: labelsOf(row),
  createdAt: isoTime(row.created_at),
  updatedAt: isoTime(row.updated_at),
});

const toRun = (row: RetentionRunRow): RetentionRun => ({
  id: row.id,
  tenantId: row.tenant_id,
  target: row.target as RetentionTarget,
  jobId: row.job_id,
  trigger: row.trigger as RetentionRun['trigger'],
  deletedRows: row.deleted_rows,
  archivedRows: row.archived_rows,
  startedAt: isoTime(row.started_at),
  completedAt: isoTimeOrNull(row.completed_at),
  error: row.error,
});

const requireTarget = (name: string): RetentionTarget => {
  const target = targetOf(name);
  if (target !== undefined) return target;
  const message = `must be one of ${retentionTargets.join(', ')}`;
  throw new AcpError('unknown-retention-target', `There is no retention target "${name}": it ${message}.`, {
    details: { errors: [{ path: 'target', message }] },
  });
};

const requireOptional = (name: string | undefined): RetentionTarget | null =>
  name === undefined ? null : requireTarget(name);

/** What saving leaves alone. */
const kept = (before: RetentionPolicyRow | undefined): Partial<RetentionPolicyRow> =>
  before === undefined ? {} : { id: before.id, created_at: before.created_at };

const noPolicy = (target: RetentionTarget): AcpError =>
  new AcpError('retention-policy-not-found', `The target ${target} has no policy.`);

export const retentionService = (deps: RetentionServiceDeps): Handlers<typeof retentionOperations> => {
  const { store, now } = deps;

  const requirePersistent = (): void => {
    if (!deps.persistent)
      throw new AcpError('persistent-store-required', 'A store in memory keeps nothing that could be removed.');
  };

  const policiesOf = async (tenantId: string) => effectivePolicies(await store.policies(tenantId), deps.defaults);

  const previewOf = async (
    tenantId: string,
    target: RetentionTarget,
    policy: EffectivePolicy,
  ): Promise<RetentionPreview> => {
    const cutoff = cutoffOf(policy, now());
    const { maxRows } = policy;
    const matchingRows = policy.enabled
      ? await deps.units.count(target, tenantId, await deps.units.bound(target, tenantId, { cutoff, maxRows }))
      : 0;
    return { target, ...policy, cutoff: isoTimeOrNull(cutoff), matchingRows };
  };

  return {
    async list({ tenantId }) {
      return ok((await store.policies(tenantId)).map(toPolicy));
    },

    async get({ tenantId }, { params }) {
      const target = requireTarget(params.target);
      const row = await store.policy(tenantId, target);
      if (row === undefined) throw noPolicy(target);
      return ok(toPolicy(row));
    },

    async save(context, { params, query, body }) {
      const { tenantId } = context;
      const target = requireTarget(params.target);
      const rule = {
        max_age_days: body.maxAgeDays ?? null,
        max_rows: body.maxRows ?? null,
        archive: body.archive === true ? 1 : 0,
        enabled: body.enabled === false ? 0 : 1,
        labels: labelsText(body.labels),
      };
      const saved = await deps.audit.save(context, query, async (stores, tell) => {
        const policies = stores(retentionStore);
        const before = await policies.policy(tenantId, target);
        if (before !== undefined && isDeepStrictEqual({ ...before, ...rule }, before)) return toPolicy(before);
        assertExpected(query, before?.updated_at);
        const at = now();
        const row = { tenant_id: tenantId, target, id: deps.newId(), ...rule, created_at: at, updated_at: at };
        if (query.dryRun === true) return toPolicy({ ...row, ...kept(before) });
        const after = toPolicy(await policies.save(row));
        tell({ id: target, before: before === undefined ? null : toPolicy(before), after });
        return after;
      });
      return ok(saved);
    },

    async remove(context, { params }) {
      const target = requireTarget(params.target);
      await deps.audit.change(context, async (stores, tell) => {
        const policies = stores(retentionStore);
        const before = await policies.policy(context.tenantId, target);
        if (before === undefined || !(await policies.remove(context.tenantId, target))) throw noPolicy(target);
        tell({ id: target, before: toPolicy(before), after: null });
      });
      return noContent();
    },

    async preview({ tenantId }, { query }) {
      const asked = requireOptional(query.target);
      requirePersistent();
      const previews: RetentionPreview[] = [];
      for (const [target, policy] of await policiesOf(tenantId))
        if (asked === null ? policy.source !== 'None' : target === asked)
          previews.push(await previewOf(tenantId, target, policy));
      return ok(previews);
    },

    async run(context, { query }) {
      const asked = requireOptional(query.target);
      requirePersistent();
      if (!deps.schedulingEnabled)
        throw new AcpError('scheduling-disabled', 'The job queue is switched off, and sweeps are jobs.');
      if (deps.lifecycle.draining) throw new AcpError('draining', 'The service is stopping and queues nothing new.');
      const policy = asked === null ? null : (await policiesOf(context.tenantId)).get(asked);
      if (asked !== null && policy?.source === 'None') throw noPolicy(asked);
      const target = asked ?? '*';
      const queued = await deps.queue.manual(context.tenantId, target, ({ jobId }, queue) =>
        deps.audit.change(context, async (stores, tell) => {
          await queue(stores);
          tell({ id: target, before: null, after: { jobId } });
        }),
      );
      return ok(queued);
    },

    async history({ tenantId }, { query }) {
      const target = requireOptional(query.target);
      return ok((await store.history(tenantId, { target, ...clampPaging(query) })).map(toRun));
    },
  };
};
