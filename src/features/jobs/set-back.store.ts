import { defineStore } from '../../db/define-store.ts';

/** A place in the order in which jobs become due. */
export interface JobPosition {
  readonly scheduledFor: number;
  readonly id: string;
}

interface MovedJobs {
  readonly ids: readonly string[];
  /** Behind it the next ones are looked for. */
  readonly last: JobPosition;
}

/** What waits for a time, where the clock that all of it goes by was set back. */
export const setBackStore = defineStore((storage) => ({
  /** Has some of the jobs in line behind this place be due so much earlier; null: there are none. */
  async moveJobs({ scheduledFor, id }: JobPosition, byMs: number, most: number): Promise<MovedJobs | null> {
    const found = await storage.db
      .selectFrom('jobs')
      .select(['id', 'scheduled_for'])
      .where('status', '=', 'Pending')
      .where((eb) => eb(eb.refTuple('scheduled_for', 'id'), '>', eb.tuple(scheduledFor, id)))
      .orderBy('scheduled_for')
      .orderBy('id')
      .limit(most)
      .execute();
    const last = found.at(-1);
    if (last === undefined) return null;
    const ids = found.map((row) => row.id);
    await storage.db
      .updateTable('jobs')
      .set((eb) => ({ scheduled_for: eb('scheduled_for', '-', byMs) }))
      .where('id', 'in', ids)
      .where('status', '=', 'Pending')
      .execute();
    return { ids, last: { scheduledFor: last.scheduled_for, id: last.id } };
  },
  /** Has the windows that end after this time do so as much earlier. */
  async moveWindows(endAfter: number, byMs: number): Promise<void> {
    await storage.db
      .updateTable('flow_windows')
      .set((eb) => ({ ends_at: eb('ends_at', '-', byMs) }))
      .where('ends_at', '>', endAfter)
      .execute();
  },
}));
