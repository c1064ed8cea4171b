import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { type LockDatabase, openLockDatabase } from './open.ts';
import { readOwner } from './owner-lock.ts';

// Whoever holds the lock of this file wants the process that serves the store to write nothing more.
const holdFile = (path: string): string => `${path}.hold`;

const lookMs = 1000;
const askedMs = 100;

const isAsked = (path: string): boolean => {
  // Nearly always: a look costs microseconds.
  if (!existsSync(holdFile(path))) return false;
  const lock = openLockDatabase(holdFile(path));
  const free = lock.tryLock();
  lock.close();
  return !free;
};

/**
 * In the process that serves a store: looks every second whether it is asked to write nothing more, and calls `hold` once.
 */
export const watchForHold = (path: string, log: Pick<Logger, 'warn' | 'error'>, hold: () => Promise<void>) => {
  let running: Promise<void> | null = null;
  const look = (): void => {
    try {
      if (running === null && isAsked(path))
        running = hold().catch((error: unknown) =>
          log.error({ path, error }, 'The store could not be held for a move'),
        );
    } catch (error) {
      // Of another user: who may not open the lock is told there.
      log.warn({ path, error }, 'It cannot be seen whether the store is to be held for a move');
      clearInterval(timer);
    }
  };
  const timer = setInterval(look, lookMs);
  timer.unref();
  return {
    async stop(): Promise<void> {
      clearInterval(timer);
      await running;
    },
  };
};

export interface WriteHold {
  release(): void;
}

const takeLock = (path: string): LockDatabase => {
  const lock = openLockDatabase(holdFile(path));
  if (lock.tryLock()) return lock;
  lock.close();
  throw new AcpError('store-unavailable', `Another move of ${path} is under way.`);
};

/**
 * Asks the process that serves a store to end its runs and to answer reads only, and waits until it does: as long as its
 * drain takes. Null: nobody serves it, or whoever did has ended. What was granted lasts until that process is started
 * again, whatever becomes of this one.
 */
export const askForHold = async (path: string): Promise<WriteHold | null> => {
  const lock = takeLock(path);
  for (;;) {
    const owner = await readOwner(path);
    if (owner?.readOnly === true) return { release: () => lock.close() };
    if (owner === null) {
      lock.close();
      return null;
    }
    await pause(askedMs);
  }
};
