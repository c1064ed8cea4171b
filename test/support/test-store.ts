import type { ContentCipher } from '../../src/core/content-cipher.ts';
import type { SqlDialect } from '../../src/db/dialect.ts';
import type { RootStorage } from '../../src/db/storage.ts';

/** A kind of store that tests run on: each folder of a service has a store of its own. */
export interface TestStore {
  readonly name: string;
  readonly sql: SqlDialect['name'];
  /** What one service leaves is there for the next one. */
  readonly durable: boolean;
  /** It is a file below the folder of its service, with all that belongs to it beside it. */
  readonly inFile: boolean;
  /** One process has it at a time: the next one closes what a dead one left open, without waiting for its leases. */
  readonly owned: boolean;
  /** The last migration, by its number, of which there was no such store yet. */
  readonly after: number;
  /** What tells the service of a folder to use it, below `Service:`. */
  settings(folder: string): Readonly<Record<string, unknown>>;
  /** Makes it, unless it is there: with nothing in it, or with the tables of this build. */
  make(folder: string, content: 'nothing' | 'tables'): Promise<void>;
  /** The one of this folder, which has been made. */
  open(folder: string): SqlDialect;
  /** What another connection sees and does to the store of a service in this folder; null: there is no other. */
  readonly aside: ((folder: string) => StoreAside) | null;
  /** Removes what of it lies outside of the folder. */
  remove(folder: string): Promise<void>;
}

/** For what no caller can bring about or see: a store that fails, and everything that was written. */
export interface StoreAside {
  /** The store as another process has it; to be closed. Default: with no key. */
  open(cipher?: ContentCipher): RootStorage;
  /** Every write to the table fails until the returned function is called. */
  refuse(table: string): Promise<() => Promise<void>>;
  /** The same, as a store that is away for them answers; null: this one cannot be away for a single table. */
  readonly lose: ((table: string) => Promise<() => Promise<void>>) | null;
  /** The table can be neither read nor written until the returned function is called. */
  takeAway(table: string): Promise<() => Promise<void>>;
  /** Where contents of attachments lie that can be read, as paths below all of them. */
  contents(): Promise<readonly string[]>;
  /** All rows, by the name of their table. */
  dump(): Promise<Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>>;
}
