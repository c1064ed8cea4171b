import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import { createWriteRetry } from '../../db/write-retry.ts';

export interface LateClosingsDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  written(runId: string): void;
  /** The store will not get this one. */
  dropped(runId: string): void;
}

// Ends of runs that were answered while nothing could be stored must not fill the memory of a process that goes on serving.
const mostBytes = 33_554_432;

const bytesOf = (statements: readonly Statement[]): number =>
  statements.reduce(
    (sum, { parameters }) =>
      parameters.reduce<number>((bytes, value) => bytes + (typeof value === 'string' ? value.length : 8), sum),
    0,
  );

/** Ends of runs that the store did not take when they happened. */
export const createLateClosings = ({ storage, clock, log, written, dropped }: LateClosingsDeps) => {
  const waiting = new Map<string, { readonly statements: readonly Statement[]; readonly bytes: number }>();
  let held = 0;

  const forget = (runId: string): void => {
    held -= waiting.get(runId)?.bytes ?? 0;
    waiting.delete(runId);
  };
  const drop = (runId: string, error: unknown): void => {
    forget(runId);
    log.error({ runId, error }, 'The end of a run could not be stored and is lost');
    dropped(runId);
  };
  const write = async (): Promise<void> => {
    for (const [runId, { statements }] of waiting) {
      try {
        await storage.transaction((stores) => stores.write(statements));
      } catch (error) {
        if (error instanceof AcpError && error.code === 'store-unavailable') throw error;
        // The store works and will never take it: the next start closes the run, where it has a row.
        drop(runId, error);
        continue;
      }
      forget(runId);
      written(runId);
    }
  };
  const retry = createWriteRetry(clock, () => waiting.size > 0, write);

  return {
    /** Written as one unit as soon as the store takes it; until then the run reads as Running, or is not found. */
    add(runId: string, statements: readonly Statement[]): void {
      const bytes = bytesOf(statements);
      waiting.set(runId, { statements, bytes });
      held += bytes;
      if (held > mostBytes) drop(runId, null);
      retry.schedule();
    },
    /** Tries once more. What is left then is left to the next start, as far as the store has a row. */
    async close(): Promise<void> {
      retry.stop();
      // Fails while the store has not recovered; the loss is logged for each run below.
      await write().catch(() => undefined);
      for (const runId of waiting.keys()) drop(runId, null);
    },
  };
};

export type LateClosings = ReturnType<typeof createLateClosings>;
