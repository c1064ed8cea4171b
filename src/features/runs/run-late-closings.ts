import { AcpError } from '../../contract/errors.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';

/** Ends of runs that the store did not take when they happened. What is still here at the end is left to the next start. */
export interface LateClosings {
  /** Written as one unit as soon as the store takes it; until then the run reads as Running. */
  add(statements: readonly Statement[]): void;
  close(): void;
}

// Often enough that a reader of such a run is not kept for long, seldom enough to be nothing to a store in trouble.
const retryMs = 1000;

export const createLateClosings = (storage: Pick<Storage, 'write'>): LateClosings => {
  const waiting = new Set<readonly Statement[]>();
  let timer: NodeJS.Timeout | null = null;
  let closed = false;

  const retry = async (): Promise<void> => {
    for (const statements of waiting) {
      try {
        await storage.write(statements);
      } catch (error) {
        if (error instanceof AcpError && error.code === 'store-unavailable') throw error;
        // The store works and will never take it: the next start closes the run.
      }
      waiting.delete(statements);
    }
  };
  const schedule = (): void => {
    if (closed || timer !== null || waiting.size === 0) return;
    timer = setTimeout(() => {
      retry()
        // Still no better: the failure itself was logged when the recording ended.
        .catch(() => undefined)
        .finally(() => {
          timer = null;
          schedule();
        });
    }, retryMs);
    timer.unref();
  };

  return {
    add(statements) {
      waiting.add(statements);
      schedule();
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};
