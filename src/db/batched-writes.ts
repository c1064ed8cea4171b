import type { Condense } from './dialect.ts';
import type { Statement } from './statement.ts';

/** Collects its writes only when the group is about to be committed, so that a burst becomes one unit. */
export interface LazyUnit {
  /** Statements of one all-or-nothing unit; empty: nothing to write. */
  collect(): readonly Statement[];
  committed(): void;
  failed(error: unknown): void;
}

/**
 * The path of the hot log: units of the same moment share a commit, each all or nothing. For what runs write as they
 * start, go on and end, and for nothing else; dependency-cruiser names who has it.
 */
export interface BatchedWrites {
  /** Resolves when the unit is committed; rejects when it was not written. */
  write(statements: readonly Statement[]): Promise<void>;
  enqueue(unit: LazyUnit): void;
  /** What a transaction of many units writes goes through it first. */
  condenseBy(condense: Condense): void;
}
