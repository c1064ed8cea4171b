import { execFile } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import type { MoveReport } from '../../../src/db/move/move-store.ts';

const movingProcess = join(import.meta.dirname, 'moving-process.ts');

/** Moves in a process of its own that kills itself after so many stretches, or so many of one thing; null when it did. */
export const moveUntilKilled = (
  from: object,
  to: object,
  stretches: number,
  only: string | null = null,
  hold = false,
): Promise<MoveReport | null> =>
  new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [movingProcess, JSON.stringify([from, to, stretches, only, hold])],
      { maxBuffer: 1_000_000 },
      (error, stdout, stderr) => {
        if (error === null) resolve(JSON.parse(stdout) as MoveReport);
        else if (error.signal === 'SIGKILL') resolve(null);
        else reject(new Error(stderr, { cause: error }));
      },
    );
  });
