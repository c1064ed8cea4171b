import { setTimeout as pause } from 'node:timers/promises';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { moveLog } from './sweep-log.ts';
import { type SweepPiece, sweepRemoval } from './sweep-removal.store.ts';

/**
 * Deletes while others are served. SQLite has one writer and its driver stops the event loop while it works, so a
 * transaction takes as many rows as fit into a few milliseconds, and then others have the same time. Where there are
 * several writers nobody waits for this one but who changes the same rows: a transaction may last as long as a few commits.
 * Design: docs/design/retention.md.
 */
export interface SweepWriter {
  /** `also` is a part of each transaction. Resolves with the rows that went. */
  remove(pieces: readonly SweepPiece[], also: (stores: UnitOfWork, rows: number) => Promise<void>): Promise<number>;
}

// A request of several steps may meet a transaction in each of them, and should still be answered within 50 ms.
const aimMs = 4;
const aimOfSeveralMs = 100;
const firstStatements = 50;
const leastStatements = 4;
const mostStatements = 5000;

/** For one sweep: what fits into a few milliseconds differs from target to target. */
export const createSweepWriter = (storage: Pick<Storage, 'transaction' | 'dialect'>): SweepWriter => {
  let most = firstStatements;
  const aim = storage.dialect.lanes === undefined ? aimMs : aimOfSeveralMs;

  /** How long the transaction held the event loop, in milliseconds. */
  const timed = async (work: (stores: UnitOfWork) => Promise<void>): Promise<number> => {
    let from = 0;
    await storage.transaction((stores) => {
      from = performance.now();
      return work(stores);
    });
    return performance.now() - from;
  };

  return {
    async remove(pieces, also) {
      let total = 0;
      for (let at = 0; at < pieces.length; ) {
        const taken: SweepPiece[] = [];
        let statements = 0;
        let rows = 0;
        // Every piece is whole; the first is taken whatever its size.
        while (at < pieces.length && (statements === 0 || statements < most)) {
          const piece = pieces[at];
          at += 1;
          if (piece === undefined) continue;
          taken.push(piece);
          statements += piece.statements.length;
          rows += piece.rows;
        }
        const heldMs = await timed(async (stores) => {
          await stores(sweepRemoval).remove(taken);
          await also(stores, rows);
        });
        total += rows;
        const fitting = Math.round((statements * aim) / Math.max(heldMs, 0.05));
        // Twice at most: one quick transaction says little about the next.
        most = Math.min(Math.max(Math.min(fitting, most * 2), leastStatements), mostStatements);
        await pause(Math.max(heldMs, 1));
        await moveLog(storage.dialect);
      }
      return total;
    },
  };
};
