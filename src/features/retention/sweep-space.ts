import { setTimeout as pause } from 'node:timers/promises';
import type { SqlDialect } from '../../db/dialect.ts';
import { moveLog } from './sweep-log.ts';

// Pages are moved from the end of the file into free places, which stops the event loop for a few milliseconds a turn.
const aimMs = 4;
const firstPages = 32;
const mostPages = 2048;
// What new rows will soon need again stays free: taking it away and growing anew would only move pages about.
const keptShare = 0.1;
const keptPages = 256;
// The file is cut with its log. Some systems take 100 ms to cut off 300 MiB, which here is 16 MiB at a time.
const cutPages = 4096;

/** Makes the store file smaller by what is free in it, in small steps, apart from a reserve. Returns the pages. */
export const giveSpaceBack = async (dialect: SqlDialect, stopped: () => boolean): Promise<number> => {
  let given = 0;
  let uncut = 0;
  let pages = firstPages;
  for (;;) {
    const { free, total } = await dialect.freePages();
    const surplus = free - Math.max(Math.round((total - free) * keptShare), keptPages);
    if (surplus <= 0 || stopped()) break;
    const from = performance.now();
    const released = await dialect.releasePages(Math.min(pages, surplus));
    const heldMs = performance.now() - from;
    if (released === 0) break;
    given += released;
    uncut += released;
    pages = Math.min(Math.max(Math.round((pages * aimMs) / Math.max(heldMs, 0.05)), 1), pages * 2, mostPages);
    await pause(Math.max(heldMs, 1));
    if (uncut < cutPages) await moveLog(dialect);
    else {
      await dialect.checkpoint('Passive');
      uncut = 0;
    }
  }
  if (uncut > 0) await dialect.checkpoint('Passive');
  return given;
};
