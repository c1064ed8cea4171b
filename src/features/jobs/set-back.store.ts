import { defineStore } from '../../db/define-store.ts';
import { placeStates } from './flow-places.store.ts';
import { outOfReach } from './job-lease.store.ts';

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
      .where('scheduled_for', '<', outOfReach)
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
  /** The same for jobs that need a place besides, and whose time has not come. */
  async movePlaces(byMs: number): Promise<void> {
    const later = storage.db.selectFrom('flow_places').select('job_id').where('state', '=', placeStates.later);
    await storage.db
      .updateTable('jobs')
      .set((eb) => ({ due_at: eb('due_at', '-', byMs) }))
      .where('id', 'in', later)
      .execute();
    await storage.db
      .updateTable('flow_places')
      .set((eb) => ({ due_at: eb('due_at', '-', byMs) }))
      .where('state', '=', placeStates.later)
      .execute();
  },
  /** The same for some of those that wait for a place alone: they keep their order, before whoever comes by the new time. */
  async moveWaiting({ scheduledFor, id }: JobPosition, byMs: number, most: number): Promise<JobPosition | null> {
    const found = await storage.db
      .selectFrom('flow_places')
      .select(['job_id', 'due_at'])
      .where('state', '=', placeStates.waits)
      .where((eb) => eb(eb.refTuple('due_at', 'job_id'), '>', eb.tuple(scheduledFor, id)))
      .orderBy('due_at')
      .orderBy('job_id')
      .limit(most)
      .execute();
    const last = found.at(-1);
    if (last === undefined) return null;
    const ids = [...new Set(found.map((row) => row.job_id))];
    await storage.db
      .updateTable('flow_places')
      .set((eb) => ({ due_at: eb('due_at', '-', byMs) }))
      .where('job_id', 'in', ids)
      .execute();
    await storage.db
      .updateTable('jobs')
      .set((eb) => ({ due_at: eb('due_at', '-', byMs) }))
      .where('id', 'in', ids)
      .execute();
    return { scheduledFor: last.due_at, id: last.job_id };
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
