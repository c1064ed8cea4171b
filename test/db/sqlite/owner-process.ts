import { acquireOwnership } from '../../../src/db/sqlite/owner-lock.ts';

// Owns a store file until it is told to let go, or killed. Says `owned` or why not.
const [file = '', url = ''] = process.argv.slice(2);
try {
  const lock = await acquireOwnership(file, { waitMs: 0 });
  if (url !== '') lock.announce(url);
  process.stdin.once('data', () => {
    lock.release();
    process.stdout.write('released\n');
    process.stdin.destroy();
  });
  process.stdout.write('owned\n');
} catch (error) {
  process.stdout.write(error instanceof Error ? error.message : String(error));
}
