import { sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { statementOf } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';
import type { HeldLease } from '../../scheduler/background-service.ts';

export type SilentRun = RunRow & { readonly beat_at: number };

const open = ['Queued', 'Running'];

/** Signs of life of runs, where several processes share a store. Times are the store's. */
export const heartbeatStore = defineStore((storage) => ({
  async beat(runIds: readonly string[], at: number): Promise<void> {
    await storage.db
      .insertInto('run_heartbeats')
      .values(runIds.map((id) => ({ run_id: id, beat_at: at })))
      .onConflict((conflict) => conflict.column('run_id').doUpdateSet({ beat_at: at }))
      .execute();
  },
  async drop(runIds: readonly string[]): Promise<void> {
    await storage.db.deleteFrom('run_heartbeats').where('run_id', 'in', runIds).execute();
  },
  /** Those of the runs that are neither Queued nor Running. */
  async over(runIds: readonly string[]): Promise<readonly string[]> {
    const query = storage.db.selectFrom('runs').select('id').where('id', 'in', runIds).where('status', 'not in', open);
    return (await query.execute()).map(({ id }) => id);
  },
  /** Changes nothing, and fails its unit when the run has given a sign of life since. */
  assertSilent(runId: string, beatAt: number): Promise<void> {
    const beat = storage.db.updateTable('run_heartbeats').set({ beat_at: beatAt });
    const query = beat.where('run_id', '=', runId).where('beat_at', '=', beatAt);
    return storage.write([statementOf(query, { mustChange: true })]);
  },
  /**
   * Counts from now on how long those runs are silent that never gave a sign of life: their own times are by the clock of
   * their process, which may be any.
   */
  async watch(at: number, held: HeldLease | null): Promise<void> {
    await storage.db
      .insertInto('run_heartbeats')
      .columns(['run_id', 'beat_at'])
      .expression((eb) =>
        eb
          .selectFrom('runs')
          .leftJoin('run_heartbeats', 'run_heartbeats.run_id', 'runs.id')
          // A bare parameter has no type in a list of columns.
          .select(['runs.id', sql<number>`cast(${at} as bigint)`.as('beat_at')])
          .where('runs.status', 'in', open)
          // A run in line belongs to its job, if it has one.
          .where((row) => row.or([row('runs.status', '=', 'Running'), row('runs.job_id', 'is', null)]))
          .where('run_heartbeats.run_id', 'is', null)
          // A process that stood still would count from a time that is long past.
          .$if(held !== null, (query) =>
            query.where(({ exists, selectFrom }) =>
              exists(
                selectFrom('service_leases')
                  .select('service_leases.name')
                  .where('service_leases.name', '=', held?.name ?? '')
                  .where('service_leases.owner', '=', held?.owner ?? '')
                  .where('service_leases.term', '=', held?.term ?? 0),
              ),
            ),
          ),
      )
      .onConflict((conflict) => conflict.column('run_id').doNothing())
      .execute();
  },
  /** Open rows without a sign of life since then, oldest first. */
  silent: (since: number, limit: number): Promise<readonly SilentRun[]> =>
    storage.db
      .selectFrom('run_heartbeats')
      .innerJoin('runs', 'runs.id', 'run_heartbeats.run_id')
      .selectAll('runs')
      .select('run_heartbeats.beat_at')
      .where('run_heartbeats.beat_at', '<', since)
      .where('runs.status', 'in', open)
      .where((row) => row.or([row('runs.status', '=', 'Running'), row('runs.job_id', 'is', null)]))
      .orderBy('runs.id')
      .limit(limit)
      .execute(),
}));

export type HeartbeatStore = StoreOf<typeof heartbeatStore>;
