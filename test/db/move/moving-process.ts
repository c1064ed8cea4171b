import process from 'node:process';
import { silentLogger } from '../../../src/core/logger.ts';
import { moveStore } from '../../../src/db/move/move-store.ts';
import { signingKeyMove, verifyTrails } from '../../../src/features/audit/index.ts';

/** Moves a store, and kills itself when it has told of so many stretches, or of so many of one thing: `from to stretches what hold`. */
const [from, to, stretches, only, hold] = JSON.parse(process.argv[2] ?? '[]');
let told = 0;
const report = await moveStore({
  from,
  to: { ...to, now: Date.now, log: silentLogger },
  hold,
  verifyTrails,
  signingKey: signingKeyMove,
  tell(_work, what) {
    if (only === null || only === what) told += 1;
    if (told === stretches) process.kill(process.pid, 'SIGKILL');
  },
});
process.stdout.write(JSON.stringify(report));
