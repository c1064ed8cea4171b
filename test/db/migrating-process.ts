import { setTimeout as pause } from 'node:timers/promises';
import { migrations } from '../../migrations/index.ts';
import type { Migration } from '../../src/db/migrate.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { storeOptions } from '../support/opened-store.ts';
import { halfway, later } from './migration-steps.ts';

// Says so when it stands at the place that was asked for, and stays there until it is killed.
const [store = '', place = 'middle'] = process.argv.slice(2);
const stand = async (): Promise<void> => {
  process.stdout.write('here\n');
  await pause(60_000);
};
const standing: Migration = { name: '9000-halfway', checksum: 'test', up: stand };
const steps =
  place === 'before'
    ? [standing]
    : place === 'after'
      ? [halfway(async () => undefined), { ...standing, name: later.name }]
      : [halfway(stand), later];
const postgres = { connectionString: store, directConnectionString: null, schema: 'service', maxConnections: 4 };
const where = store.startsWith('postgres:')
  ? storeOptions('', { provider: 'Postgres', postgres })
  : storeOptions(store);
// Without a place it starts as any process does, and ends.
const opened = await openStorage({
  ...where,
  migrations: place === 'none' ? [...migrations, halfway(async () => undefined), later] : [...migrations, ...steps],
});
await opened.close();
