import type { Kysely } from 'kysely';
import { isDecryptionFailure, keyNameOf } from '../../core/content-cipher.ts';
import { type Statement, updateStatement } from '../statement.ts';
import type { RootStorage } from '../storage.ts';
import type { Tables } from '../tables.ts';
import { type ProtectedTable, protectedShape } from './protected-rows.ts';
import {
  type FindTenants,
  orderOf,
  protectedPages,
  readStretch,
  type StoredValues,
  type TenantOf,
  type WalkedRow,
} from './protected-walk.ts';
import type { CountedRow, ReencryptTally } from './reencrypt-tally.ts';

// What is in memory at once, and what one transaction writes. A row that has more is a stretch of its own.
const stretchBytes = 4_194_304;
const stretchRows = 200;

/** The columns of a row that are not under the active key, and the keys they are under; null for a plain one. */
type Need = ReadonlyMap<string, string | null>;

const needOf = ({ starts }: WalkedRow, activeKeyId: string | null): Need => {
  const need = new Map<string, string | null>();
  for (const [column, start] of Object.entries(starts)) {
    const keyId = keyNameOf(start);
    if (keyId !== activeKeyId) need.set(column, keyId);
  }
  return need;
};

const keysOf = (need: Need, columns: Iterable<string>): string[] => [
  ...new Set([...columns].flatMap((column) => need.get(column) ?? [])),
];

/** A row, and what has to be done about it. */
interface Member {
  readonly row: WalkedRow;
  readonly need: Need;
}

/** Stretches of a page that begin and end with a row that needs something. */
const stretchesOf = function* (page: readonly Member[]): Generator<readonly Member[], void> {
  let stretch: Member[] = [];
  let bytes = 0;
  const ended = function* (): Generator<readonly Member[], void> {
    const last = stretch.findLastIndex(({ need }) => need.size > 0);
    if (last >= 0) yield stretch.slice(0, last + 1);
    stretch = [];
    bytes = 0;
  };
  for (const member of page) {
    if (stretch.length === 0 && member.need.size === 0) continue;
    if (stretch.length >= stretchRows || (stretch.length > 0 && bytes + member.row.bytes > stretchBytes)) {
      yield* ended();
      if (member.need.size === 0) continue;
    }
    stretch.push(member);
    bytes += member.row.bytes;
  }
  yield* ended();
};

interface Rewritten {
  /** The columns that could be read, under the active key. */
  readonly values: StoredValues;
  /** Those that could not. */
  readonly unreadable: readonly string[];
}

const rewritten = (
  { rows }: RootStorage,
  table: ProtectedTable,
  tenantId: string,
  stored: StoredValues,
  columns: readonly string[],
  dryRun: boolean,
): Rewritten => {
  const key = Object.fromEntries(protectedShape(table).key.map((name) => [name, stored[name]]));
  const values: Record<string, unknown> = {};
  const unreadable: string[] = [];
  for (const column of columns) {
    try {
      const part = rows.open(table, tenantId, { ...key, [column]: stored[column] } as never) as StoredValues;
      values[column] = (dryRun ? part : (rows.seal(table, tenantId, part as never) as StoredValues))[column];
    } catch (error) {
      if (!isDecryptionFailure(error)) throw error;
      unreadable.push(column);
    }
  }
  return { values, unreadable };
};

const updates = (
  storage: RootStorage,
  table: ProtectedTable,
): ((values: StoredValues, row: StoredValues) => Statement) => {
  const { columns } = protectedShape(table);
  const keys = orderOf(table);
  return updateStatement(storage.db, table, (values: StoredValues, row: StoredValues) => ({
    set: Object.fromEntries(columns.map((column) => [column, values[column] ?? row[column]])) as object,
    where: Object.fromEntries(keys.map((column) => [column, row[column]])) as object,
  }));
};

/**
 * Goes through a table and writes each row that is plain or under a former key anew, a few at a time: whoever stops it
 * leaves some rows as they were and the others written. `dryRun` reads and counts alike.
 */
export const reencryptTable = async (
  storage: RootStorage,
  findTenants: FindTenants,
  table: ProtectedTable,
  tally: ReencryptTally,
  dryRun: boolean,
): Promise<void> => {
  const { activeKeyId } = storage.rows.cipher;
  const update = updates(storage, table);
  const placeName = (row: StoredValues): string => JSON.stringify(orderOf(table).map((column) => row[column]));

  /** What comes of one row: how it counts, and what writes it. */
  const renew = (stored: StoredValues, need: Need, tenantId: string | null): [CountedRow, Statement | null] => {
    const keys = keysOf(need, need.keys());
    if (tenantId === null) return [{ standing: 'Orphaned', keys, written: false }, null];
    const { values, unreadable } = rewritten(storage, table, tenantId, stored, [...need.keys()], dryRun);
    const written = !dryRun && unreadable.length < need.size;
    const readable = keys.length > 0 ? 'Former' : 'Plain';
    const standing = unreadable.length > 0 ? 'Unreadable' : readable;
    const left = written ? keysOf(need, unreadable) : keys;
    return [{ standing, keys: left, written }, written ? update(values, stored) : null];
  };

  const rewrite = async (stretch: readonly Member[], tenantOf: TenantOf): Promise<void> => {
    const [first, last] = [stretch[0], stretch.at(-1)];
    if (first === undefined || last === undefined) return;
    const needs = new Map(stretch.map(({ row, need }) => [placeName(row.place), need]));
    const renewedOf = async (db: Kysely<Tables>) =>
      (await readStretch(db, table, first.row, last.row)).flatMap((row) => {
        // A store that is served has new rows meanwhile, at which nobody looked.
        const need = needs.get(placeName(row));
        return need === undefined || need.size === 0 ? [] : [renew(row, need, tenantOf(row))];
      });
    const renewed = dryRun
      ? await renewedOf(storage.db)
      : // Read and written in one unit: what a process that serves the store changes in between is not undone.
        await storage.atomic(async (db) => {
          const changes = await renewedOf(db);
          const statements = changes.flatMap(([, statement]) => statement ?? []);
          if (statements.length > 0) await storage.dialect.write(db, statements);
          return changes;
        });
    for (const [counted] of renewed) tally.add(counted);
  };

  for await (const page of protectedPages(storage.db, table)) {
    const members = page.map((row) => ({ row, need: needOf(row, activeKeyId) }));
    const open = members.filter(({ need }) => need.size > 0);
    tally.current(page.length - open.length);
    if (open.length === 0) continue;
    const tenantOf = await findTenants(
      table,
      open.map(({ row }) => row),
    );
    for (const stretch of stretchesOf(members)) await rewrite(stretch, tenantOf);
  }
};
