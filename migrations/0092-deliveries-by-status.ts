import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const index = (name: string) => `${dialect.qualifiedName('webhook_deliveries')}_${name}`;
  // It has what waits among all else, so that it takes the place of the index of that.
  await db.schema
    .createIndex(index('status'))
    .on('webhook_deliveries')
    .columns(['status', 'webhook_id', 'created_at', 'id'])
    .execute();
  await db.schema.dropIndex(index('waiting')).execute();
};

/** Deliveries of a webhook with a status, newest first, are found however few of many they are. */
export const deliveriesByStatus: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0092-deliveries-by-status',
  worksFrom: '0035-arriving-work',
  up,
};
