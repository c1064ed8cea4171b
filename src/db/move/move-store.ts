import { migrations as allMigrations } from '../../../migrations/index.ts';
import { AcpError } from '../../contract/errors.ts';
import { copyContents } from '../content/backup.ts';
import { contentFiles, contentFolder } from '../content/files.ts';
import { migrationStatus } from '../migrate.ts';
import { type OpenOptions, type StoreOptions, storeFile, storeName } from '../open-storage.ts';
import { absentKeys } from '../protection/absent-keys.ts';
import type { Storage } from '../storage.ts';
import { storePlace } from '../store-place.ts';
import { clearTable, copyTable, type MoveEnds, unstorable, unstorableRow } from './copy-table.ts';
import { endRecord, tableProgress } from './move-record.ts';
import { refuseWithoutRoom, storedAttachments } from './move-room.ts';
import { type MoveSource, openMoveSource } from './move-source.ts';
import { openMoveTarget, previewMoveTarget } from './move-target.ts';
import { movedTables } from './moved-tables.ts';
import { tableDigest } from './table-hash.ts';
import { countRows, rowsOf, shapeOf, type TableShape } from './table-walk.ts';

export interface MovedTable {
  readonly table: string;
  readonly rows: number;
  /** SHA-256 of all rows, the same at both ends; null: nothing was copied yet. */
  readonly hash: string | null;
}

/** The audit trail of a tenant, at the target. */
export interface MovedTrail {
  readonly tenantId: string;
  readonly status: string;
  readonly entriesChecked: number;
  readonly firstFailingEntryId: string | null;
}

export interface MoveReport {
  /** Where both stores are, without credentials. */
  readonly from: string;
  readonly to: string;
  readonly dryRun: boolean;
  /** An earlier call was broken off, and this one went on with it. */
  readonly resumed: boolean;
  readonly rows: number;
  readonly tables: readonly MovedTable[];
  readonly auditTrails: readonly MovedTrail[];
  /** Files of attachments that lie beside the source; at the target they lie beside it, too. */
  readonly attachments: { readonly files: number; readonly totalBytes: number };
  /** One sentence each; empty when everything is at the target as it was. */
  readonly findings: readonly string[];
}

/** Told after each stretch: what is done with a table, how many of its rows are through, and how many it has. */
export type TellMove = (work: 'copied' | 'compared' | 'read', table: string, rows: number, of: number) => void;

export interface MoveOptions {
  readonly from: StoreOptions;
  readonly to: OpenOptions;
  /** Reads everything and writes nothing. */
  readonly dryRun?: boolean;
  /** The process that serves the source is asked to answer reads only; otherwise a source that is served is refused. */
  readonly hold?: boolean;
  readonly tell?: TellMove;
  /** Verifies the audit trails of all tenants of a store. */
  readonly verifyTrails: (storage: Storage) => Promise<readonly MovedTrail[]>;
}

// What one kind of store cannot hold is seldom one row alone.
const maxFindings = 100;

const refuseUnready = async ({ storage, name }: MoveSource, { from, to }: MoveOptions): Promise<void> => {
  const { pending } = await migrationStatus(storage, to.migrations ?? allMigrations);
  if (pending.length > 0)
    throw new AcpError(
      'migrating',
      `The store ${name} waits for migrations (${pending.join(', ')}); run \`acp db migrate\` on it first.`,
    );
  const absent = await absentKeys(from);
  if (absent.length > 0)
    throw new AcpError(
      'validation-failed',
      `Content of ${name} is under the keys ${absent.join(', ')}, which are not in Service:AtRest:Keys: it could not be read at the target either.`,
    );
};

/** Files of attachments beside a store in a file have no place on a server. */
const refuseFiles = async (source: MoveSource, to: StoreOptions): Promise<void> => {
  if (source.path === null || storePlace(to).provider !== 'Postgres') return;
  const folder = contentFolder(source.path);
  for await (const _place of contentFiles(folder).places())
    throw new AcpError(
      'feature-not-available',
      `Attachments lie in ${folder}, from where they cannot be moved to PostgreSQL yet.`,
    );
};

const namesOf = ({ columns }: TableShape): string => columns.map(({ name, kind }) => `${name} ${kind}`).join(', ');

/** The tables of both ends. They have the same columns, since they have the same migrations. */
const sharedShapes = async ({ from, to }: MoveEnds): Promise<readonly TableShape[]> => {
  const shapes: TableShape[] = [];
  for (const table of movedTables) {
    const [shape, other] = [await shapeOf(from, table), await shapeOf(to, table)];
    if (shape.key.length === 0 || namesOf(shape) !== namesOf(other))
      throw new AcpError('store-unavailable', `The table ${table} is not the same at both ends of the move.`);
    shapes.push(shape);
  }
  return shapes;
};

/** Null: both ends differ. */
const comparedTable = async ({ from, to }: MoveEnds, shape: TableShape, of: number, tell: TellMove) => {
  const [source, target] = await Promise.all([
    tableDigest(from.db, shape),
    tableDigest(to.db, shape, (rows) => tell('compared', shape.table, rows, of)),
  ]);
  return source.rows === target.rows && source.hash === target.hash ? source : null;
};

/** Copies a table and compares both ends. What an earlier call has copied may be old by now, and is then copied anew. */
const moveTable = async (ends: MoveEnds, shape: TableShape, tell: TellMove): Promise<MovedTable> => {
  const { table } = shape;
  const of = await countRows(ends.from.db, table);
  const copyAndCompare = async () => {
    await copyTable(ends, shape, (rows) => tell('copied', table, rows, of));
    return comparedTable(ends, shape, of, tell);
  };
  const isPartly = (await tableProgress(ends.to.db, table)).last !== null;
  let digest = await copyAndCompare();
  if (digest === null && isPartly) {
    await clearTable(ends, shape);
    digest = await copyAndCompare();
  }
  if (digest !== null) return { table, ...digest };
  throw new AcpError(
    'store-unavailable',
    `The rows of ${table} differ between both ends after they were copied: another program writes to one of them.`,
  );
};

const trailFinding = ({ tenantId, status, firstFailingEntryId }: MovedTrail): string =>
  `The audit trail of tenant ${tenantId} has a fault (${status}) at entry ${firstFailingEntryId ?? 'none'}, at the source, too: its rows are the same.`;

const trailFindings = (trails: readonly MovedTrail[]): string[] =>
  trails.filter(({ status }) => status !== 'Valid').map(trailFinding);

const rowsIn = (tables: readonly MovedTable[]): number => tables.reduce((sum, { rows }) => sum + rows, 0);

/** Files beside the source. Bytes that are rows have moved by now, and those in a folder or a bucket stay where they are. */
const moveContents = async (ends: MoveEnds, source: MoveSource, to: StoreOptions) => {
  if (source.path === null || storePlace(to).provider !== 'Sqlite') return { files: 0, totalBytes: 0, findings: [] };
  return copyContents({
    ...ends,
    fromFolder: contentFolder(source.path),
    toFolder: contentFolder(storeFile(to)),
  });
};

type Outcome = Omit<MoveReport, 'from' | 'to' | 'dryRun'>;

const moved = async (
  source: MoveSource,
  { to, tell = () => undefined, verifyTrails }: MoveOptions,
): Promise<Outcome> => {
  const target = await openMoveTarget(to, source);
  try {
    const ends = { from: source.storage, to: target.storage };
    const tables: MovedTable[] = [];
    for (const shape of await sharedShapes(ends)) tables.push(await moveTable(ends, shape, tell));
    const { files, totalBytes, findings } = await moveContents(ends, source, to);
    const auditTrails = await verifyTrails(target.storage);
    source.assertKept();
    target.assertKept();
    // Last: until then no service starts here.
    await endRecord(target.storage);
    return {
      resumed: target.resumes,
      rows: rowsIn(tables),
      tables,
      auditTrails,
      attachments: { files, totalBytes },
      findings: [...findings, ...trailFindings(auditTrails)],
    };
  } finally {
    await target.close();
  }
};

/** What a move would do, and which rows it would be refused for. */
const previewed = async (
  source: MoveSource,
  { to, tell = () => undefined, verifyTrails }: MoveOptions,
): Promise<Outcome> => {
  const { storage } = source;
  const target = await previewMoveTarget(to, source);
  try {
    const tables: MovedTable[] = [];
    const findings: string[] = [];
    for (const table of movedTables) {
      const shape = await shapeOf(storage, table);
      const of = await countRows(storage.db, table);
      let rows = 0;
      for await (const stretch of rowsOf(storage.db, shape)) {
        for (const row of stretch) {
          const why = unstorable(target.storage.dialect, shape, row);
          if (why !== null && findings.length < maxFindings) findings.push(unstorableRow(shape, row, why));
        }
        rows += stretch.length;
        tell('read', table, rows, of);
      }
      tables.push({ table, rows, hash: null });
    }
    const auditTrails = await verifyTrails(storage);
    return {
      resumed: target.resumes,
      rows: rowsIn(tables),
      tables,
      auditTrails,
      attachments: await storedAttachments(storage),
      findings: [...findings, ...trailFindings(auditTrails)],
    };
  } finally {
    await target.close();
  }
};

/**
 * Copies a store to another place, of the same kind or another one, and compares both. The source is only read. Broken
 * off at any point, it leaves a target that no service starts on, and goes on when it is called again.
 */
export const moveStore = async (options: MoveOptions): Promise<MoveReport> => {
  const [from, to] = [storeName(options.from), storeName(options.to)];
  if (from === to) throw new AcpError('validation-failed', 'Both ends of the move are the same store.');
  const { dryRun = false, hold = false } = options;
  const source = await openMoveSource(options.from, dryRun ? 'Preview' : hold ? 'Held' : 'Alone');
  try {
    await refuseUnready(source, options);
    await refuseFiles(source, options.to);
    await refuseWithoutRoom(source, options.to);
    return { from, to, dryRun, ...(await (dryRun ? previewed : moved)(source, options)) };
  } finally {
    await source.close();
  }
};
