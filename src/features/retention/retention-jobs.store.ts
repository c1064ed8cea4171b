import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Tables } from '../../db/tables.ts';
import { retentionKey } from './retention.job.ts';

// The hourly sweep belongs to the store and not to a tenant; a slug is never empty.
const everyTenant = { tenant_id: '', target: '*' } as const;

// Every table with rows of a target, and the policies. Events, inputs and calls belong to a run of the same tenant.
const byTenant = [
  'runs',
  'run_traces',
  'sessions',
  'attachments',
  'idempotency_keys',
  'openai_responses',
  'openai_conversations',
  'run_scores',
  'skill_script_grants',
  'retention_policies',
] as const satisfies readonly (keyof Tables)[];

export const retentionJobStore = defineStore((storage) => {
  /** From one tenant to the next by an index, whatever the number of rows. */
  const tenantsOf = async (table: (typeof byTenant)[number]): Promise<string[]> => {
    const tenants: string[] = [];
    for (let after = ''; ; ) {
      const row = await storage.db
        .selectFrom(table as 'runs')
        .select('tenant_id')
        .where('tenant_id', '>', after)
        .orderBy('tenant_id')
        .limit(1)
        .executeTakeFirst();
      if (row === undefined) return tenants;
      tenants.push(row.tenant_id);
      after = row.tenant_id;
    }
  };

  /** No index of jobs begins with the tenant: the thread that scans reads all of them. */
  const tenantsOfJobs = async (): Promise<string[]> => {
    const rows = await storage.scan(storage.db.selectFrom('jobs').select('tenant_id').distinct());
    return rows.map(({ tenant_id }) => tenant_id);
  };

  return {
    /** Sweeps in line or at work, of all tenants. */
    async open() {
      const rows = await storage.db
        .selectFrom('jobs')
        .select(['id', 'tenant_id', 'target_name', 'payload'])
        .where('status', 'in', ['Pending', 'Leased', 'Running'])
        .where('handler_key', '=', retentionKey)
        .orderBy('id')
        .execute();
      return rows.map((row) => {
        // One that cannot be decrypted is for its handler to fail, and holds up no other.
        const { payload = null } = storage.rows.openList('jobs', row.tenant_id, [row]).rows[0] ?? {};
        return {
          id: row.id,
          tenantId: row.tenant_id,
          targetName: row.target_name,
          payload: payload === null ? null : (JSON.parse(payload) as unknown),
        };
      });
    },
    /** Notes that the hourly sweep was queued; fails its unit when it was since `since`, by whatever process. */
    async noteHourly(since: number, now: number): Promise<void> {
      const { numInsertedOrUpdatedRows } = await storage.db
        .insertInto('retention_marks')
        .values({ ...everyTenant, swept_until: now })
        .onConflict((conflict) =>
          conflict
            .columns(['tenant_id', 'target'])
            .doUpdateSet({ swept_until: now })
            .where('retention_marks.swept_until', '<=', since),
        )
        .executeTakeFirst();
      if (numInsertedOrUpdatedRows === 0n) throw new ConditionFailedError();
    },
    /** Tenants that have rows of a target, or policies. */
    async tenants(): Promise<readonly string[]> {
      const tenants = await Promise.all([...byTenant.map(tenantsOf), tenantsOfJobs()]);
      return [...new Set(tenants.flat())].sort();
    },
  };
});

export type RetentionJobStore = StoreOf<typeof retentionJobStore>;
