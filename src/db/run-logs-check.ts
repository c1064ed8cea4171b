import { type Kysely, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** Packs of each run follow one another without gap or overlap, from sequence 0. */
const brokenLogs = async (db: Kysely<Tables>, maxFindings: number): Promise<string[]> => {
  const packs = db
    .selectFrom('run_events')
    .select(['run_id', 'first_sequence', 'last_sequence'])
    .select(
      sql<number>`lag(last_sequence, 1, -1) over (partition by run_id order by first_sequence)`.as('previous_sequence'),
    );
  const broken = await db
    .selectFrom(packs.as('pack'))
    .select(['run_id', 'first_sequence', 'previous_sequence'])
    .where((eb) =>
      eb.or([
        eb('first_sequence', '!=', sql<number>`previous_sequence + 1`),
        eb('last_sequence', '<', eb.ref('first_sequence')),
      ]),
    )
    .limit(maxFindings)
    .execute();
  return broken.map(
    (pack) => `The log of run ${pack.run_id} has ${pack.first_sequence} after ${pack.previous_sequence}.`,
  );
};

/**
 * A closed run was closed together with its last event, so that its count is what the log holds, unless retention has
 * removed the logs of its time.
 */
const unfinishedLogs = async (db: Kysely<Tables>, maxFindings: number): Promise<string[]> => {
  const stored = sql<number>`coalesce(max(${sql.ref('run_events.last_sequence')}) + 1, 0)`;
  const rows = await db
    .selectFrom('runs')
    .leftJoin('run_events', 'run_events.run_id', 'runs.id')
    .select(['runs.id as id', 'runs.event_count as expected', stored.as('present')])
    .where('runs.status', 'not in', ['Queued', 'Running'])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('retention_marks')
            .select('retention_marks.target')
            .whereRef('retention_marks.tenant_id', '=', 'runs.tenant_id')
            .where('retention_marks.target', 'in', ['RunEvents', 'Runs'])
            .whereRef('retention_marks.swept_until', '>', 'runs.completed_at'),
        ),
      ),
    )
    .groupBy(['runs.id', 'runs.event_count'])
    .having((eb) => eb(stored, '!=', eb.ref('runs.event_count')))
    .limit(maxFindings)
    .execute();
  return rows.map((run) => `The closed run ${run.id} should have ${run.expected} events and has ${run.present}.`);
};

/** What is wrong with the logs of runs, one sentence each. */
export const checkRunLogs = async (db: Kysely<Tables>, maxFindings: number): Promise<string[]> => [
  ...(await brokenLogs(db, maxFindings)),
  ...(await unfinishedLogs(db, maxFindings)),
];
