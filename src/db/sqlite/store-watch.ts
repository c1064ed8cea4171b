import { statSync } from 'node:fs';
import type { Logger } from '../../core/logger.ts';
import type { SqlDialect } from '../dialect.ts';
import type { StoreCondition } from '../store-condition.ts';

/** Device and inode, which stay with a file for as long as it exists; null: nothing can be seen there. */
const identityAt = (path: string): string | null => {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // Missing, or below a folder that this user may not enter any more: it is not to be had at its path.
    return null;
  }
};

/** Remembers what is there by now. Each look gives the first path at which something else is, or nothing; null: none. */
const identityWatch = (paths: readonly string[]): (() => string | null) => {
  const first = new Map<string, string>();
  return () => {
    for (const path of paths) {
      const now = identityAt(path);
      const before = first.get(path);
      if (before === undefined) {
        if (now !== null) first.set(path, now);
      } else if (before !== now) return path;
    }
    return null;
  };
};

// What is written in this time to a file that was just deleted is lost; a look costs microseconds.
const intervalMs = 1000;

/** Looks whether the store is where it was, and whether one that failed takes writes again. */
export const startStoreWatch = (
  paths: readonly string[],
  dialect: Pick<SqlDialect, 'probeWrite'>,
  condition: StoreCondition,
  log: Pick<Logger, 'warn'>,
) => {
  const lookForOther = identityWatch(paths);
  let running: Promise<void> | null = null;

  /** At the files, which costs a call of the system for each. */
  const look = (): void => condition.looked(lookForOther());
  const retry = async (): Promise<void> => {
    try {
      await dialect.probeWrite();
      condition.works();
    } catch (error) {
      condition.failed(error);
    }
  };
  const turn = (): void => {
    look();
    if (condition.trouble === null || condition.refusal !== null) return;
    running ??= retry()
      .catch((error: unknown) => log.warn({ error }, 'It could not be tried whether the store takes writes'))
      .finally(() => {
        running = null;
      });
  };

  look();
  const timer = setInterval(turn, intervalMs);
  timer.unref();
  return {
    look,
    async stop(): Promise<void> {
      clearInterval(timer);
      await running;
    },
  };
};
