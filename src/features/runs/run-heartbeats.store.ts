import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { statementOf } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';

/** `beat_at`: null without a sign of life. */
export type SilentRun = RunRow & { readonly beat_at: number | null };

/** Signs of life of runs, where several processes share a store. */
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
  /** Changes nothing, and fails its unit when the run has given a sign of life since. */
  assertSilent(runId: string, beatAt: number): Promise<void> {
    const beat = storage.db.updateTable('run_heartbeats').set({ beat_at: beatAt });
    const query = beat.where('run_id', '=', runId).where('beat_at', '=', beatAt);
    return storage.write([statementOf(query, { mustChange: true })]);
  },
  /** Running rows without one since then, oldest first. A run that never gave one is as old as its start. */
  silent: (since: number, limit: number): Promise<readonly SilentRun[]> =>
    storage.db
      .selectFrom('runs')
      .selectAll('runs')
      .leftJoin('run_heartbeats', 'run_heartbeats.run_id', 'runs.id')
      .select('run_heartbeats.beat_at')
      .where('runs.status', '=', 'Running')
      .where((eb) => eb(eb.fn.coalesce('run_heartbeats.beat_at', 'runs.started_at', 'runs.created_at'), '<', since))
      .orderBy('runs.id')
      .limit(limit)
      .execute(),
}));

export type HeartbeatStore = StoreOf<typeof heartbeatStore>;
