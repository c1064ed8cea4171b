import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // None, or few among many: counted for every collection of metrics, and gone when they are old.
  await db.schema
    .createIndex(`${dialect.qualifiedName('external_spans')}_set_aside`)
    .on('external_spans')
    .columns(['received_at', 'tenant_id'])
    .where(sql.ref('set_aside'), 'is not', null)
    .execute();
};

/** Spans from outside that were set aside are found by their age. */
export const spansDropped: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0094-spans-dropped',
  worksFrom: '0035-arriving-work',
  up,
};
