import { sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { noWait } from './job-claims.store.ts';
import { outOfReach } from './job-lease.store.ts';

/** What a job that needs a place of a key does. */
export const placeStates = { later: 0, waits: 1, has: 2 } as const;

/** A key of which only so many jobs are at work at once, and what a job says that waits for it. */
export interface PlaceLimit {
  /** A hash of the key. */
  readonly id: string;
  readonly most: number;
  readonly message: string;
}

/** A job that was just put in line, and needs a place of each key at once to start. */
export interface NeededPlaces {
  readonly jobId: string;
  readonly tenantId: string;
  readonly limits: readonly PlaceLimit[];
  /** Lower ones go first. */
  readonly rank: number;
  /** What it waits for before that; null: nothing. */
  readonly hold: { readonly until: number; readonly code: string; readonly message: string } | null;
  readonly now: number;
}

/** Whose jobs; empty: those of every tenant, of every agent. */
export interface StoppedAgents {
  readonly tenantId: string;
  readonly agentName: string;
}

/** Jobs that have got their places. */
export interface LetIn {
  readonly jobIds: readonly string[];
  /** When the earliest of them was due; infinite: there is none. */
  readonly dueAt: number;
}

// Of those in line some may wait for a place of another key, too.
const perLook = 100;

/**
 * Places of jobs: all of it is part of a unit, which has each key that it looks at to itself.
 * Design: docs/design/flow-control.md.
 */
export const flowPlaceStore = defineStore(({ db }) => {
  /** How many places of a key are free. `most`: so many there are from now on; null: as many as before. */
  const free = async (id: string, tenantId: string, most: number | null): Promise<number> => {
    // Written in any case: of two units that look at one moment the second sees what the first has done.
    const limit = await db
      .insertInto('flow_limits')
      .values({ id, tenant_id: tenantId, most: most ?? 1 })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((eb) => ({ most: most ?? eb.ref('flow_limits.most') })),
      )
      .returning('most')
      .executeTakeFirstOrThrow();
    const { taken } = await db
      .selectFrom('flow_places')
      .select(({ fn }) => fn.countAll<number | string>().as('taken'))
      .where('limit_id', '=', id)
      .where('state', '=', placeStates.has)
      .executeTakeFirstOrThrow();
    return limit.most - Number(taken);
  };

  const placesOf = (jobId: string) =>
    db.selectFrom('flow_places').selectAll().where('job_id', '=', jobId).orderBy('limit_id').execute();
  type Place = Awaited<ReturnType<typeof placesOf>>[number];

  const leave = async (jobId: string): Promise<void> => {
    await db.deleteFrom('flow_places').where('job_id', '=', jobId).execute();
  };

  /** Gives a job its places; false: it has ended meanwhile. */
  const start = async (jobId: string): Promise<boolean> => {
    const { numUpdatedRows } = await db
      .updateTable('jobs')
      .set({ scheduled_for: sql<number>`due_at`, ...noWait })
      .where('id', '=', jobId)
      .where('status', '=', 'Pending')
      .where('scheduled_for', '=', outOfReach)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) await leave(jobId);
    else await db.updateTable('flow_places').set({ state: placeStates.has }).where('job_id', '=', jobId).execute();
    return numUpdatedRows > 0n;
  };

  /** A key that has no place for the job; `except` is known to have one. */
  const fullFor = async (jobId: string, except: string | null): Promise<Place | undefined> => {
    for (const place of await placesOf(jobId))
      if (place.limit_id !== except && (await free(place.limit_id, place.tenant_id, null)) <= 0) return place;
    return undefined;
  };

  const firstInLine = (id: string, most: number) =>
    db
      .selectFrom('flow_places')
      .select(['job_id', 'due_at'])
      .where('limit_id', '=', id)
      .where('state', '=', placeStates.waits)
      .orderBy('rank')
      .orderBy('due_at')
      .orderBy('job_id')
      .limit(most)
      .execute();

  /** Gives places of a key to those of the first in line that lack no other. `isOver`: none of them could start. */
  const startFirst = async (id: string, most: number, look: number) => {
    const started: { readonly job_id: string; readonly due_at: number }[] = [];
    const first = await firstInLine(id, look);
    let gone = 0;
    for (const place of first) {
      if (started.length === most) break;
      if ((await fullFor(place.job_id, id)) !== undefined) continue;
      if (await start(place.job_id)) started.push(place);
      else gone += 1;
    }
    return { started, isOver: started.length + gone === 0 && (first.length < look || look === perLook) };
  };

  /** Gives free places of a key to the first ones in line. */
  const fill = async (id: string, freePlaces: number): Promise<LetIn> => {
    const jobIds: string[] = [];
    let dueAt = Number.POSITIVE_INFINITY;
    for (let look = Math.min(freePlaces, perLook); jobIds.length < freePlaces; look = perLook) {
      const { started, isOver } = await startFirst(id, freePlaces - jobIds.length, look);
      for (const place of started) {
        jobIds.push(place.job_id);
        dueAt = Math.min(dueAt, place.due_at);
      }
      if (isOver) break;
    }
    return { jobIds, dueAt };
  };

  const together = (all: readonly LetIn[]): LetIn => ({
    jobIds: all.flatMap(({ jobIds }) => jobIds),
    dueAt: Math.min(...all.map(({ dueAt }) => dueAt)),
  });

  /** A job that goes on waiting says what for. */
  const explain = async (jobId: string): Promise<void> => {
    const message = (await fullFor(jobId, null))?.message;
    if (message === undefined) return;
    await db
      .updateTable('jobs')
      .set({ error_code: 'flow-concurrency', error_message: message })
      .where('id', '=', jobId)
      .where('status', '=', 'Pending')
      .where('scheduled_for', '=', outOfReach)
      .execute();
  };

  return {
    /** Has a job that nobody can have taken yet wait for its places, and gives those that are free to who is first. */
    async enter({ jobId, tenantId, limits, rank, hold, now }: NeededPlaces): Promise<LetIn> {
      const dueAt = hold?.until ?? now;
      const why = hold === null ? noWait : { error_code: hold.code, error_message: hold.message };
      await db
        .updateTable('jobs')
        .set({ scheduled_for: outOfReach, due_at: dueAt, ...why })
        .where('id', '=', jobId)
        .execute();
      const state = hold === null ? placeStates.waits : placeStates.later;
      const letIn: LetIn[] = [];
      for (const { id, message } of limits)
        await db
          .insertInto('flow_places')
          .values({ job_id: jobId, limit_id: id, tenant_id: tenantId, state, rank, due_at: dueAt, message })
          .execute();
      for (const { id, most } of limits.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
        letIn.push(await fill(id, await free(id, tenantId, most)));
      const all = together(letIn);
      if (hold === null && !all.jobIds.includes(jobId)) await explain(jobId);
      return all;
    },
    /** What the job has come to, for its places and for those that wait for them. */
    async settle(jobId: string, now: number): Promise<LetIn> {
      const places = await placesOf(jobId);
      const job = await db
        .selectFrom('jobs')
        .select(['scheduled_for', 'due_at', 'completed_at'])
        .where('id', '=', jobId)
        .executeTakeFirst();
      const hasEnded = job === undefined || job.completed_at !== null;
      // It has its places, and is at work, or about to be.
      if (!hasEnded && job.scheduled_for !== outOfReach) return together([]);
      const dueAt = job?.due_at ?? now;
      const state = dueAt > now ? placeStates.later : placeStates.waits;
      if (hasEnded) await leave(jobId);
      else await db.updateTable('flow_places').set({ state, due_at: dueAt }).where('job_id', '=', jobId).execute();
      const letIn: LetIn[] = [];
      for (const { limit_id: id, tenant_id } of places) {
        letIn.push(await fill(id, await free(id, tenant_id, null)));
        if (hasEnded)
          await db
            .deleteFrom('flow_limits')
            .where('id', '=', id)
            .where(({ not, exists, selectFrom }) =>
              not(exists(selectFrom('flow_places').select('job_id').where('limit_id', '=', id))),
            )
            .execute();
      }
      const all = together(letIn);
      if (!hasEnded && state === placeStates.waits && !all.jobIds.includes(jobId)) await explain(jobId);
      return all;
    },
    /**
     * Jobs of these agents that were put off while they were stopped are due now, as far as their places let them. Those that
     * wait for a window say so, and those that were tried before have a pause of their own.
     */
    async bringForward({ tenantId, agentName }: StoppedAgents, handlerKeys: readonly string[], now: number) {
      let held = db
        .selectFrom('jobs')
        .select('id')
        .where('status', '=', 'Pending')
        .where('handler_key', 'in', handlerKeys)
        .where('attempt', '=', 0)
        .where('error_code', 'is', null)
        .where('scheduled_for', '=', outOfReach)
        .where('due_at', '>', now);
      if (tenantId !== '') held = held.where('tenant_id', '=', tenantId);
      if (agentName !== '') held = held.where('target_name', '=', agentName);
      await db
        .updateTable('flow_places')
        .set({ due_at: now })
        .where('state', '=', placeStates.later)
        .where('job_id', 'in', held)
        .execute();
      await db.updateTable('jobs').set({ due_at: now }).where('id', 'in', held).execute();
    },
    /** Jobs whose time has come, and those that have ended, or gone back in line, without a word of it here. */
    async unsettled(now: number, most: number): Promise<readonly string[]> {
      const rows = await db
        .selectFrom('flow_places')
        .leftJoin('jobs', 'jobs.id', 'flow_places.job_id')
        .select('flow_places.job_id')
        .distinct()
        .where('flow_places.state', '=', placeStates.has)
        .where((eb) =>
          eb.or([
            eb('jobs.id', 'is', null),
            eb('jobs.completed_at', 'is not', null),
            eb('jobs.scheduled_for', '=', outOfReach),
          ]),
        )
        .limit(most)
        .execute();
      const due = await db
        .selectFrom('flow_places')
        .select('job_id')
        .where('state', '=', placeStates.later)
        .where('due_at', '<=', now)
        .orderBy('due_at')
        .orderBy('job_id')
        .limit(most)
        .execute();
      return [...new Set([...rows, ...due].map((row) => row.job_id))];
    },
  };
});

export type FlowPlaceStore = StoreOf<typeof flowPlaceStore>;
