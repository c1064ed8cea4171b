import type { BatchedWrites, LazyUnit } from './batched-writes.ts';
import type { Condense, SqlDialect } from './dialect.ts';
import type { Statement } from './statement.ts';

// A commit costs by the pages that it touches, and those hardly grow with the group. So a group that grew in the last turn of
// the event loop waits for one more; these bound what the first of its units waits.
const maxTurns = 5;
export const enoughUnits = 64;

/** Starts a group in the next turn of the event loop, or in a later one while it grows. A unit alone is written at once. */
export const gather = (pending: () => number, start: () => void): void => {
  const look = (before: number, turn: number): void => {
    const units = pending();
    if (units > before && units < enoughUnits && turn < maxTurns) setImmediate(look, units, turn + 1);
    else start();
  };
  setImmediate(look, 1, 1);
};

/** The batched path of a store, for who opens and closes it. */
export interface CommitPath extends Omit<BatchedWrites, 'write'> {
  /** Writes what is pending and refuses everything after it. */
  close(): Promise<void>;
}

/**
 * Group commit: what is enqueued in one turn of the event loop, or in a few when many write at once, goes into one
 * transaction. The order of enqueueing is the order of writing and of the callbacks.
 */
export class CommitQueue implements CommitPath {
  readonly #dialect: SqlDialect;
  #pending: LazyUnit[] = [];
  #running: Promise<void> | null = null;
  #scheduled = false;
  #closed = false;
  #condense: Condense = (statements) => statements;

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect;
  }

  condenseBy(condense: Condense): void {
    this.#condense = condense;
  }

  enqueue(unit: LazyUnit): void {
    if (this.#closed) {
      unit.failed(new Error('The store is closed.'));
      return;
    }
    this.#pending.push(unit);
    if (!this.#scheduled && this.#running === null) this.#schedule();
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#pending.length > 0 || this.#running !== null) {
      this.#start();
      await this.#running;
    }
  }

  #schedule(): void {
    this.#scheduled = true;
    gather(
      () => this.#pending.length,
      () => this.#start(),
    );
  }

  #start(): void {
    this.#scheduled = false;
    if (this.#running !== null || this.#pending.length === 0) return;
    this.#running = this.#flush().finally(() => {
      this.#running = null;
      if (this.#pending.length > 0 && !this.#scheduled) this.#schedule();
    });
  }

  async #flush(): Promise<void> {
    const units = this.#pending;
    this.#pending = [];
    const collected: { unit: LazyUnit; statements: readonly Statement[] }[] = [];
    for (const unit of units) {
      try {
        collected.push({ unit, statements: unit.collect() });
      } catch (error) {
        unit.failed(error);
      }
    }
    const writing = collected.filter((entry) => entry.statements.length > 0);
    try {
      const results =
        writing.length === 0
          ? []
          : await this.#dialect.commitUnits(
              writing.map((entry) => entry.statements),
              this.#condense,
            );
      let index = 0;
      for (const { unit, statements } of collected) {
        const result = statements.length === 0 ? undefined : results[index++];
        if (result === undefined || result.ok) unit.committed();
        else unit.failed(result.error);
      }
    } catch (error) {
      for (const { unit } of collected) unit.failed(error);
    }
  }
}
