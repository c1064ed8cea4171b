import process from 'node:process';
import { silentLogger } from '../../../src/core/logger.ts';
import { moveStore } from '../../../src/db/move/move-store.ts';
import { verifyTrails } from '../../../src/features/audit/index.ts';

/** Moves a store, and kills itself when it has told of so many stretches: `from to stretches` as JSON. */
const [from, to, stretches] = JSON.parse(process.argv[2] ?? '[]');
let told = 0;
const report = await moveStore({
  from,
  to: { ...to, now: Date.now, log: silentLogger },
  verifyTrails,
  tell() {
    told += 1;
    if (told === stretches) process.kill(process.pid, 'SIGKILL');
  },
});
process.stdout.write(JSON.stringify(report));
