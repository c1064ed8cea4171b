import type { Migration } from '../../src/db/migrate.ts';

const add = (name: string) => ({ tenant_id: 't', name, current_version: 1 });

/** Writes, lets the test act, and writes again, all in one step. */
export const halfway = (between: () => Promise<void>): Migration => ({
  name: '9000-halfway',
  checksum: 'test',
  up: async ({ db }) => {
    await db.insertInto('agents').values(add('first-half')).execute();
    await between();
    await db.insertInto('agents').values(add('second-half')).execute();
  },
});

export const later: Migration = {
  name: '9001-later',
  checksum: 'test',
  up: async ({ db }) => {
    await db.insertInto('agents').values(add('later')).execute();
  },
};
