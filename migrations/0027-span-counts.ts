import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  await db.schema
    .alterTable('run_traces')
    .addColumn('span_count', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  // A sealed list of spans was stored as a list of their number, with the sealed text in front. A damaged row must not
  // keep the store from starting: it counts as none.
  await db
    .updateTable('run_traces')
    .set({
      span_count: sql<number>`json_array_length(spans)`,
      spans: sql<string>`case when substr(spans, 1, 2) = '["' then json_extract(spans, '$[0]') else spans end`,
    })
    .where(sql<boolean>`json_valid(spans)`)
    .execute();
};

export const spanCounts: MigrationStep = { name: '0027-span-counts', up };
