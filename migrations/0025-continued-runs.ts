import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // From a run to the one that went on with it. Few runs go on with another, and the others are not in it.
  await db.schema
    .createIndex(`${dialect.qualifiedName('runs')}_continued`)
    .on('runs')
    .columns(['tenant_id', 'continued_from_run_id', 'id'])
    .where(sql.ref('continued_from_run_id'), 'is not', null)
    .execute();
  await dialect.describeSelectivity(db, [{ table: 'runs', index: 'runs_continued', rows: [20_000, 20_000, 1, 1] }]);
};

export const continuedRuns: MigrationStep = { name: '0025-continued-runs', up };
