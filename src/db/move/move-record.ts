import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import type { RootStorage } from '../storage.ts';
import type { Tables } from '../tables.ts';
import type { StoredValues } from './table-walk.ts';

/** A move that is not finished, as its target tells it. */
export interface UnfinishedMove {
  /** Where it comes from, without credentials. */
  readonly source: string;
  /** Of the source: see `fingerprintOf`. */
  readonly fingerprint: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

export interface TableProgress {
  /** Key of the last row that was copied; null: none. */
  readonly last: StoredValues | null;
  readonly rows: number;
}

const whole = '';

/** Nothing was copied of a table. */
export const untouched: TableProgress = { last: null, rows: 0 };

/** When which migration was applied: no two stores that were made apart share it. */
export const fingerprintOf = async ({ db }: RootStorage): Promise<string> => {
  const rows = await db.selectFrom('schema_migrations').selectAll().orderBy('name').execute();
  const text = rows.map(({ name, checksum, applied_at: at }) => `${name} ${checksum} ${Number(at)}\n`).join('');
  return createHash('sha256').update(text).digest('hex');
};

const progressOf = async <T>(db: Kysely<Tables>, part: string): Promise<T | null> => {
  const row = await db.selectFrom('move_record').select('progress').where('part', '=', part).executeTakeFirst();
  return row === undefined ? null : (JSON.parse(row.progress) as T);
};

/** Null: the store is whole. */
export const unfinishedMove = async ({ db, dialect }: RootStorage): Promise<UnfinishedMove | null> => {
  const columns = await dialect.columnsOf(db, 'move_record');
  return columns.length === 0 ? null : progressOf<UnfinishedMove>(db, whole);
};

/** Throws `store-unavailable` for the target of a move that is not finished: a part of the rows is no store. */
export const refuseHalfMoved = async (storage: RootStorage): Promise<void> => {
  const move = await unfinishedMove(storage);
  if (move === null) return;
  throw new AcpError(
    'store-unavailable',
    `The store is the target of a move from ${move.source} that is not finished; call the same \`acp db move\` again, which goes on with it.`,
  );
};

/** From here on no service starts on the target, until `endRecord`. */
export const beginRecord = (storage: RootStorage, move: UnfinishedMove): Promise<void> =>
  storage.atomic(async (db) => {
    await db.schema
      .createTable('move_record')
      .addColumn('part', 'text', (column) => column.primaryKey())
      .addColumn('progress', 'text', (column) => column.notNull())
      .execute();
    await db
      .insertInto('move_record')
      .values({ part: whole, progress: JSON.stringify(move) })
      .execute();
  });

export const endRecord = (storage: RootStorage): Promise<void> =>
  storage.atomic(async (db) => {
    await db.schema.dropTable('move_record').execute();
  });

export const tableProgress = async (db: Kysely<Tables>, table: keyof Tables): Promise<TableProgress> =>
  (await progressOf<TableProgress>(db, table)) ?? untouched;

/** In the transaction of what it tells. */
export const noteProgress = async (db: Kysely<Tables>, table: keyof Tables, progress: TableProgress): Promise<void> => {
  const text = JSON.stringify(progress);
  await db
    .insertInto('move_record')
    .values({ part: table, progress: text })
    .onConflict((conflict) => conflict.column('part').doUpdateSet({ progress: text }))
    .execute();
};
