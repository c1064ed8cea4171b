import { setTimeout as pause } from 'node:timers/promises';
import { migrations } from '../../migrations/index.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { storeOptions } from '../support/opened-store.ts';
import { halfway, later } from './migration-steps.ts';

// Says so when it stands in the middle of a migration, and stays there until it is killed.
const [file = ''] = process.argv.slice(2);
const stuck = halfway(async () => {
  process.stdout.write('halfway\n');
  await pause(60_000);
});
await openStorage(storeOptions(file, { migrations: [...migrations, stuck, later] }));
