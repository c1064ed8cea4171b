import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import { createWriteRetry } from '../../db/write-retry.ts';
import { type LateClosing, type RecordLack, recordLacks } from '../../engine/record/index.ts';
import { runStore } from './runs.store.ts';

export interface LateClosingsDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: {
    warn(fields: Readonly<Record<string, unknown>>, message: string): void;
    error(fields: Readonly<Record<string, unknown>>, message: string): void;
  };
  /** Tells who follows the run from another process. */
  announce(runId: string): void;
  written(runId: string): void;
  /** The store will not get this one. */
  dropped(runId: string): void;
}

interface Waiting {
  readonly tenantId: string;
  readonly late: LateClosing;
  readonly bytes: number;
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
export const createLateClosings = ({ storage, clock, log, announce, written, dropped }: LateClosingsDeps) => {
  const waiting = new Map<string, Waiting>();
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
  /** False: the store has an end of the run, be it this one, whose commit was not heard of, or that of another process. */
  const writeOne = (
    runId: string,
    { tenantId, late }: Waiting,
    always: LateClosing['always'],
    lack: RecordLack,
  ): Promise<boolean> =>
    storage.transaction(async (stores) => {
      const runs = stores(runStore);
      const row = await runs.get(tenantId, runId);
      if (row !== undefined && row.status !== 'Queued' && row.status !== 'Running') return false;
      const next = row === undefined ? null : (await runs.lastSequence(runId)) + 1;
      await stores.write([...(late.held === null ? [] : [late.held]), ...always, ...late.recorded(next, lack)]);
      return true;
    });
  /** The session may have gone on without the turn: then the run is closed all the same. */
  const writeTurn = async (runId: string, run: Waiting, lack: RecordLack): Promise<boolean> => {
    const { always, held: lease } = run.late;
    try {
      return await writeOne(runId, run, always, lack);
    } catch (error) {
      const isTurn = error instanceof ConditionFailedError && (lease === null || error.statement !== lease);
      if (!isTurn || always.length === 0) throw error;
      log.warn({ runId, error }, 'The turn of a run could not be saved: its session has gone on without it');
      return writeOne(runId, run, [], lack);
    }
  };
  const isAway = (error: unknown): boolean => error instanceof AcpError && error.code === 'store-unavailable';
  /** A table that refuses what goes with the end does not hide that the run is over. */
  const writeAny = async (runId: string, run: Waiting): Promise<boolean> => {
    let refusal: unknown;
    for (const lack of recordLacks)
      try {
        return await writeTurn(runId, run, lack);
      } catch (error) {
        if (isAway(error) || error instanceof ConditionFailedError) throw error;
        log.warn({ runId, error, lack }, 'The store refused the end of a run, which is tried with less');
        refusal = error;
      }
    throw refusal;
  };
  const write = async (): Promise<void> => {
    for (const [runId, run] of waiting) {
      try {
        if (await writeAny(runId, run)) announce(runId);
        else log.warn({ runId }, 'The end of a run is not written again: the store has one');
      } catch (error) {
        if (isAway(error)) throw error;
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
    add({ id, tenantId }: { readonly id: string; readonly tenantId: string }, late: LateClosing): void {
      const bytes = bytesOf([...late.always, ...late.recorded(null), ...late.recorded(0)]);
      waiting.set(id, { tenantId, late, bytes });
      held += bytes;
      if (held > mostBytes) drop(id, null);
      retry.schedule();
    },
    /** Runs that have ended here and are open in the store. */
    runIds: (): Iterable<string> => waiting.keys(),
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
