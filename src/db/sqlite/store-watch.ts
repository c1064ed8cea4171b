import type { Logger } from '../../core/logger.ts';
import type { SqlDialect } from '../dialect.ts';
import type { StoreCondition } from '../store-condition.ts';
import { createFileIdentity } from './file-identity.ts';

/** Looks whether the store is where it was, and whether one that failed takes writes again. */
export interface StoreWatch {
  /** At the files, which costs a call of the system for each. */
  look(): void;
  stop(): Promise<void>;
}

// What is written in this time to a file that was just deleted is lost; a look costs microseconds.
const intervalMs = 1000;

export const startStoreWatch = (
  paths: readonly string[],
  dialect: Pick<SqlDialect, 'probeWrite'>,
  condition: StoreCondition,
  log: Pick<Logger, 'warn'>,
): StoreWatch => {
  const identity = createFileIdentity(paths);
  let running: Promise<void> | null = null;

  const look = (): void => condition.found(identity.look());
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
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
};
