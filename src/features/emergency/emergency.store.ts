import type { Kysely } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { EmergencyStopRow, Tables, ToolInvocationRow } from '../../db/tables.ts';

// More is counted and not listed.
const heldShown = 1000;
// SQLite binds at most 32,766 values in a statement.
const idsPerQuery = 500;

/** What a stop is about; empty: every tenant, every agent. */
export interface StopTarget {
  readonly tenantId: string;
  readonly agentName: string;
}

const queued = (db: Kysely<Tables>, { tenantId, agentName }: StopTarget) => {
  let query = db.selectFrom('runs').where('status', '=', 'Queued');
  if (tenantId !== '') query = query.where('tenant_id', '=', tenantId);
  if (agentName !== '') query = query.where('agent_name', '=', agentName);
  return query;
};

export const emergencyStore = defineStore((storage) => ({
  inForce: (): Promise<readonly EmergencyStopRow[]> =>
    storage.db
      .selectFrom('emergency_stops')
      .selectAll()
      .where('resumed_at', 'is', null)
      .orderBy('stopped_at')
      .orderBy('id')
      .execute(),
  async insert(row: EmergencyStopRow): Promise<void> {
    await storage.db.insertInto('emergency_stops').values(row).execute();
  },
  /** False: somebody else has resumed it. */
  async resume(id: string, by: string | null, at: number): Promise<boolean> {
    const { numUpdatedRows } = await storage.db
      .updateTable('emergency_stops')
      .set({ resumed_by: by, resumed_at: at })
      .where('id', '=', id)
      .where('resumed_at', 'is', null)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  },
  /** Calls of these runs that were made and may have changed something, oldest first. */
  async effects(runIds: readonly string[]): Promise<readonly ToolInvocationRow[]> {
    const rows: ToolInvocationRow[] = [];
    for (let from = 0; from < runIds.length; from += idsPerQuery)
      rows.push(
        ...(await storage.db
          .selectFrom('tool_invocations')
          .selectAll()
          .where('run_id', 'in', runIds.slice(from, from + idsPerQuery))
          .where('effect', '!=', 'Read')
          .where('called', '<>', 0)
          .orderBy('created_at')
          .orderBy('id')
          .execute()),
      );
    return rows;
  },
  async held(target: StopTarget) {
    const counted = await queued(storage.db, target)
      .select(({ fn }) => fn.countAll<number | bigint>().as('count'))
      .executeTakeFirst();
    const oldest = await queued(storage.db, target)
      .select(['id', 'tenant_id', 'agent_name', 'created_at'])
      .orderBy('created_at')
      .orderBy('id')
      .limit(heldShown)
      .execute();
    return { count: Number(counted?.count ?? 0), oldest };
  },
  /** Runs of these agents that were put off while they were stopped are due at once; `runHandlerKeys`: of their jobs. */
  async makeDue({ tenantId, agentName }: StopTarget, runHandlerKeys: readonly string[], now: number): Promise<void> {
    // An attempt that failed keeps its pause: only those that never began are put forward. Other jobs have times of
    // their own, such as the next sweep; so have runs that wait for a window of their flow, and say so.
    let held = storage.db
      .updateTable('jobs')
      .set({ scheduled_for: now })
      .where('status', '=', 'Pending')
      .where('handler_key', 'in', runHandlerKeys)
      .where('attempt', '=', 0)
      .where('error_code', 'is', null)
      .where('scheduled_for', '>', now)
      // One that needs a place is let in by whoever gives places away.
      .where('due_at', 'is', null);
    if (tenantId !== '') held = held.where('tenant_id', '=', tenantId);
    if (agentName !== '') held = held.where('target_name', '=', agentName);
    await held.execute();
  },
}));

export type EmergencyStore = StoreOf<typeof emergencyStore>;
