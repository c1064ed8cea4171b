import { defineStore } from '../../db/define-store.ts';
import type { RetentionPolicyRow, RetentionRunRow } from '../../db/tables/retention.ts';
import type { RetentionTarget } from './retention.schema.ts';

export interface RetentionStore {
  /** By target. */
  policies(tenantId: string): Promise<readonly RetentionPolicyRow[]>;
  policy(tenantId: string, target: RetentionTarget): Promise<RetentionPolicyRow | undefined>;
  /** Creates it, or replaces all but its id and its creation. */
  save(row: RetentionPolicyRow): Promise<RetentionPolicyRow>;
  /** False: there was none. */
  remove(tenantId: string, target: RetentionTarget): Promise<boolean>;
  history(
    tenantId: string,
    filter: { readonly target: RetentionTarget | null; readonly skip: number; readonly take: number },
  ): Promise<readonly RetentionRunRow[]>;
  start(row: RetentionRunRow): Promise<void>;
  /** Adds to the counts of a sweep. */
  count(row: Pick<RetentionRunRow, 'tenant_id' | 'id'>, deleted: number, archived: number): Promise<void>;
  end(row: Pick<RetentionRunRow, 'tenant_id' | 'id'>, now: number, error: string | null): Promise<void>;
  /** Remembers up to which age a target was swept. */
  mark(tenantId: string, target: RetentionTarget, sweptUntil: number): Promise<void>;
  /** Ends what a dead process left running. */
  interrupted(now: number): Promise<void>;
}

export const retentionStore = defineStore((storage): RetentionStore => {
  const ofRun = ({ tenant_id, id }: Pick<RetentionRunRow, 'tenant_id' | 'id'>) =>
    storage.db.updateTable('retention_runs').where('tenant_id', '=', tenant_id).where('id', '=', id);
  const policiesOf = (tenantId: string) =>
    storage.db.selectFrom('retention_policies').selectAll().where('tenant_id', '=', tenantId);

  return {
    policies: (tenantId) => policiesOf(tenantId).orderBy('target').execute(),
    policy: (tenantId, target) => policiesOf(tenantId).where('target', '=', target).executeTakeFirst(),
    save: (row) =>
      storage.db
        .insertInto('retention_policies')
        .values(row)
        .onConflict((conflict) =>
          conflict.columns(['tenant_id', 'target']).doUpdateSet((eb) => ({
            max_age_days: eb.ref('excluded.max_age_days'),
            max_rows: eb.ref('excluded.max_rows'),
            archive: eb.ref('excluded.archive'),
            enabled: eb.ref('excluded.enabled'),
            updated_at: eb.ref('excluded.updated_at'),
          })),
        )
        .returningAll()
        .executeTakeFirstOrThrow(),
    async remove(tenantId, target) {
      const { numDeletedRows } = await storage.db
        .deleteFrom('retention_policies')
        .where('tenant_id', '=', tenantId)
        .where('target', '=', target)
        .executeTakeFirst();
      return numDeletedRows > 0n;
    },
    history(tenantId, { target, skip, take }) {
      const rows = storage.db.selectFrom('retention_runs').selectAll().where('tenant_id', '=', tenantId);
      const chosen = target === null ? rows : rows.where('target', '=', target);
      // Ids are made as sweeps start.
      return chosen.orderBy('id', 'desc').limit(take).offset(skip).execute();
    },
    async start(row) {
      await storage.db.insertInto('retention_runs').values(row).execute();
    },
    async count(row, deleted, archived) {
      await ofRun(row)
        .set((eb) => ({
          deleted_rows: eb('deleted_rows', '+', deleted),
          archived_rows: eb('archived_rows', '+', archived),
        }))
        .execute();
    },
    async end(row, now, error) {
      await ofRun(row).set({ completed_at: now, error }).execute();
    },
    async mark(tenantId, target, sweptUntil) {
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
    async interrupted(now) {
      await storage.db
        .updateTable('retention_runs')
        .set({ completed_at: now, error: 'interrupted' })
        .where('completed_at', 'is', null)
        .execute();
    },
  };
});
