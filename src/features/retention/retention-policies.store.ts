import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { RetentionPolicyRow, RetentionRunRow } from '../../db/tables/retention.ts';
import type { RetentionTarget } from './retention.schema.ts';

type RunKey = Pick<RetentionRunRow, 'tenant_id' | 'id'>;

export const retentionStore = defineStore((storage) => {
  const open = ({ tenant_id, id }: RunKey) =>
    storage.db
      .updateTable('retention_runs')
      .where('tenant_id', '=', tenant_id)
      .where('id', '=', id)
      .where('completed_at', 'is', null);
  const policiesOf = (tenantId: string) =>
    storage.db.selectFrom('retention_policies').selectAll().where('tenant_id', '=', tenantId);

  return {
    /** By target. */
    policies: (tenantId: string): Promise<readonly RetentionPolicyRow[]> =>
      policiesOf(tenantId).orderBy('target').execute(),
    policy: (tenantId: string, target: RetentionTarget): Promise<RetentionPolicyRow | undefined> =>
      policiesOf(tenantId).where('target', '=', target).executeTakeFirst(),
    /** Creates it, or replaces all but its id and its creation. */
    save: (row: RetentionPolicyRow): Promise<RetentionPolicyRow> =>
      storage.db
        .insertInto('retention_policies')
        .values(row)
        .onConflict((conflict) =>
          conflict.columns(['tenant_id', 'target']).doUpdateSet((eb) => ({
            max_age_days: eb.ref('excluded.max_age_days'),
            max_rows: eb.ref('excluded.max_rows'),
            archive: eb.ref('excluded.archive'),
            enabled: eb.ref('excluded.enabled'),
            labels: eb.ref('excluded.labels'),
            updated_at: eb.ref('excluded.updated_at'),
          })),
        )
        .returningAll()
        .executeTakeFirstOrThrow(),
    /** False: there was none. */
    remove: (tenantId: string, target: RetentionTarget): Promise<boolean> =>
      deletesRow(
        storage.db.deleteFrom('retention_policies').where('tenant_id', '=', tenantId).where('target', '=', target),
      ),
    history(
      tenantId: string,
      { target, skip, take }: { readonly target: RetentionTarget | null; readonly skip: number; readonly take: number },
    ): Promise<readonly RetentionRunRow[]> {
      const rows = storage.db.selectFrom('retention_runs').selectAll().where('tenant_id', '=', tenantId);
      const chosen = target === null ? rows : rows.where('target', '=', target);
      // Ids are made as sweeps start.
      return chosen.orderBy('id', 'desc').limit(take).offset(skip).execute();
    },
    async start(row: RetentionRunRow): Promise<void> {
      await storage.db.insertInto('retention_runs').values(row).execute();
    },
    /** Adds to the counts of a sweep. A part of what it removes: fails its unit when somebody has ended the sweep, since another worker has its job. */
    async count(row: RunKey, deleted: number, archived: number): Promise<void> {
      const { numUpdatedRows } = await open(row)
        .set((eb) => ({
          deleted_rows: eb('deleted_rows', '+', deleted),
          archived_rows: eb('archived_rows', '+', archived),
        }))
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw new ConditionFailedError();
    },
    /** Changes nothing when somebody has ended it before. */
    async end(row: RunKey, now: number, error: string | null): Promise<void> {
      await open(row).set({ completed_at: now, error }).execute();
    },
    /** Remembers up to which age a target was swept. */
    async mark(tenantId: string, target: RetentionTarget, sweptUntil: number): Promise<void> {
      await storage.db
        .insertInto('retention_marks')
        .values({ tenant_id: tenantId, target, swept_until: sweptUntil })
        .onConflict((conflict) =>
          conflict
            .columns(['tenant_id', 'target'])
            .doUpdateSet({ swept_until: sweptUntil })
            .where('retention_marks.swept_until', '<', sweptUntil),
        )
        .execute();
    },
    /** Ends what a dead process left running; with a job, only what was done for it. */
    async interrupted(now: number, jobId: string | null = null): Promise<void> {
      const left = storage.db
        .updateTable('retention_runs')
        .set({ completed_at: now, error: 'interrupted' })
        .where('completed_at', 'is', null);
      await (jobId === null ? left : left.where('job_id', '=', jobId)).execute();
    },
  };
});

export type RetentionStore = StoreOf<typeof retentionStore>;
