import { setTimeout as pause } from 'node:timers/promises';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import { moveLog } from './sweep-log.ts';
import type { SweepPiece } from './sweep-removal.store.ts';

/**
 * Deletes while others are served. SQLite has one writer and its driver stops the event loop while it works, so a
 * transaction takes as many rows as fit into a few milliseconds, and then others have the same time.
 */
export interface SweepWriter {
  /** `added` gives what is written with each transaction. Resolves with the rows that went. */
  write(pieces: readonly SweepPiece[], added: (rows: number) => readonly Statement[]): Promise<number>;
}

// A request of several steps may meet a transaction in each of them, and should still be answered within 50 ms.
const aimMs = 4;
const firstStatements = 50;
const leastStatements = 4;
const mostStatements = 5000;

/** For one sweep: what fits into a few milliseconds differs from target to target. */
export const createSweepWriter = (storage: Pick<Storage, 'enqueue' | 'dialect'>): SweepWriter => {
  let most = firstStatements;

  /** How long the transaction held the event loop, in milliseconds. */
  const commit = (statements: readonly Statement[]): Promise<number> =>
    new Promise((resolve, reject) => {
      let from = 0;
      storage.enqueue({
        collect() {
          from = performance.now();
          return statements;
        },
        committed: () => resolve(performance.now() - from),
        failed: reject,
      });
    });

  return {
    async write(pieces, added) {
      let total = 0;
      for (let at = 0; at < pieces.length; ) {
        const statements: Statement[] = [];
        let rows = 0;
        // Every piece is whole; the first is taken whatever its size.
        while (at < pieces.length && (statements.length === 0 || statements.length < most)) {
          const piece = pieces[at];
          at += 1;
          if (piece === undefined) continue;
          statements.push(...piece.statements);
          rows += piece.rows;
        }
        const heldMs = await commit([...statements, ...added(rows)]);
        total += rows;
        const fitting = Math.round((statements.length * aimMs) / Math.max(heldMs, 0.05));
        // Twice at most: one quick transaction says little about the next.
        most = Math.min(Math.max(Math.min(fitting, most * 2), leastStatements), mostStatements);
        await pause(Math.max(heldMs, 1));
        await moveLog(storage.dialect);
      }
      return total;
    },
  };
};
