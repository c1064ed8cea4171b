import type { RawBuilder } from 'kysely';
import type { Statement } from './statement.ts';
import type { Tables } from './tables.ts';

/** A part of a table: the rows with ids from `from` on and before `below`. */
export interface Partition {
  readonly table: keyof Tables;
  /** Column with the ids. */
  readonly column: string;
  readonly name: string;
  /** Null: all ids before `below`. */
  readonly from: string | null;
  readonly below: string;
  /** The time of `below`, in epoch milliseconds. */
  readonly endsAt: number;
}

/** What came of emptying partitions; `rows`: what the statements of the transaction returned, one list for each. */
export type EmptyingEnd =
  | { readonly isEmptied: true; readonly rows: readonly (readonly unknown[])[] }
  /** A row stays, or others are at work on the partitions; nothing was changed. */
  | { readonly isEmptied: false; readonly why: 'stays' | 'busy' };

/** Tables whose rows lie apart by the time in their ids, so that old ones go as a whole. */
export interface StorePartitions {
  /**
   * Makes partitions for the present and the time ahead, by a clock that all processes go by. Never rejects: what could not be
   * made is told in the log, and its rows go where all go that fit nowhere.
   */
  prepare(nowMs: number): Promise<void>;
  /** Whether those of the present are there, whoever makes them. Never rejects; `missing` has the answer. */
  look(nowMs: number): Promise<void>;
  /** Names of those that should be there, as the last look has shown. */
  missing(): readonly string[];
  /** Those with ids of a time that is over, oldest first. */
  past(nowMs: number): Promise<readonly Partition[]>;
  /**
   * Takes all rows out of partitions at one stroke, unless one of the queries `stays` has a row. They are asked when
   * nobody can write to the partitions any more; `also` is written in the same transaction, before the rows are gone.
   */
  empty(
    partitions: readonly Partition[],
    stays: readonly Pick<Statement, 'sql' | 'parameters'>[],
    also: readonly Statement[],
  ): Promise<EmptyingEnd>;
  /**
   * Removes partitions of a time that is over and that have no rows; their names. One that is in use now stays for the next time.
   */
  dropEmpty(nowMs: number): Promise<readonly string[]>;
  /** For migrations: the qualified name of a partition. */
  identifier(name: string): RawBuilder<unknown>;
}
