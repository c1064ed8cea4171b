import { migrations as allMigrations } from '../../../migrations/index.ts';
import { AcpError } from '../../contract/errors.ts';
import { migrationStatus, refuseNewerStore } from '../migrate.ts';
import type { OpenOptions, StoreOptions } from '../open-storage.ts';
import { absentKeys } from '../protection/absent-keys.ts';
import type { RootStorage, Storage } from '../storage.ts';
import { postgresOptions, signingKeyFile, storeFile, storeName, storePlace } from '../store-place.ts';
import { clearTable, copyTable, type MoveEnds, unstorable, unstorableRow } from './copy-table.ts';
import { moveFiles, refuseContents, sourceMarkers, targetShape } from './move-contents.ts';
import { endRecord } from './move-record.ts';
import { refuseWithoutRoom, storedAttachments } from './move-room.ts';
import { type MoveSource, openMoveSource, type SourceUse } from './move-source.ts';
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
  /** Files of attachments that lie beside the source, and where they lie at the target; null: nowhere yet. */
  readonly attachments: { readonly files: number; readonly totalBytes: number; readonly location: string | null };
  /** Whether the source has a key that signs exports of the audit trail, which the target then has, too. */
  readonly signingKey: boolean;
  /** One sentence each; empty when everything is at the target as it was. */
  readonly findings: readonly string[];
}

export interface SigningKeyPlace {
  readonly storage: Storage;
  /** Null: it is a row. */
  readonly file: string | null;
}

/** The key that signs exports of the audit trail. */
export interface SigningKeyMove {
  /** Whether the source has one. Throws where the target has another one in its file. */
  look(from: SigningKeyPlace, toFile: string | null): Promise<boolean>;
  /** Safe to repeat. */
  carry(from: SigningKeyPlace, to: SigningKeyPlace): Promise<void>;
}

/** Told after each stretch: what is done with a table, how many of its rows are through, and how many it has. */
export type TellMove = (work: 'copied' | 'compared' | 'read', what: string, rows: number, of: number) => void;

export interface MoveOptions {
  readonly from: StoreOptions;
  readonly to: OpenOptions;
  /** Reads everything and writes nothing. */
  readonly dryRun?: boolean;
  /** Whoever serves the source is asked to answer reads only; otherwise a source that is served is refused. */
  readonly hold?: boolean;
  /** Ends the move between two steps, as an error does: what was copied stays, and a hold of its source ends. */
  readonly signal?: AbortSignal;
  /** Told each few seconds while processes that were asked to hold are still at work; how many. */
  readonly waits?: (processes: number) => void;
  readonly tell?: TellMove;
  /** Verifies the audit trails of all tenants of a store. */
  readonly verifyTrails: (storage: Storage) => Promise<readonly MovedTrail[]>;
  readonly signingKey: SigningKeyMove;
}

// What one kind of store cannot hold is seldom one row alone.
const maxFindings = 100;

const refuseUnready = async ({ storage, name }: MoveSource, { from, to }: MoveOptions): Promise<void> => {
  const migrations = to.migrations ?? allMigrations;
  const { applied, pending } = await migrationStatus(storage, migrations);
  refuseNewerStore({ applied }, migrations, name);
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

interface TableMove {
  readonly shape: TableShape;
  /** As the target has it. */
  readonly there: TableShape;
  /** The target may have rows that an earlier call has copied. */
  readonly resumes: boolean;
  readonly tell: TellMove;
}

/** Null: both ends differ. */
const comparedTable = async ({ from, to }: MoveEnds, { shape, there, tell }: TableMove, of: number) => {
  const [source, target] = await Promise.all([
    tableDigest(from.db, shape),
    tableDigest(to.db, there, (rows) => tell('compared', shape.table, rows, of)),
  ]);
  return source.rows === target.rows && source.hash === target.hash ? source : null;
};

/** Copies a table and compares both ends. What an earlier call has copied may be old by now, and is then copied anew. */
const moveTable = async (ends: MoveEnds, move: TableMove): Promise<MovedTable> => {
  const { shape, there, resumes, tell } = move;
  const { table } = shape;
  const of = await countRows(ends.from.db, table);
  const copyAndCompare = async () => {
    await copyTable(ends, shape, (rows) => tell('copied', table, rows, of));
    return comparedTable(ends, move, of);
  };
  let digest = await copyAndCompare();
  if (digest === null && resumes) {
    await clearTable(ends, there);
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

/** Where the key that signs exports of a store is: in a file, or among its rows. */
const keyPlace = (storage: RootStorage, options: StoreOptions): SigningKeyPlace => ({
  storage,
  file: storePlace(options).provider === 'Postgres' ? null : signingKeyFile(storeFile(options)),
});

type Outcome = Omit<MoveReport, 'from' | 'to' | 'dryRun'>;

const moved = async (
  source: MoveSource,
  { from, to, tell = () => undefined, verifyTrails, signingKey }: MoveOptions,
): Promise<Outcome> => {
  const target = await openMoveTarget(to, source);
  try {
    const ends = { from: source.storage, to: target.storage };
    const tables: MovedTable[] = [];
    const markers = await sourceMarkers(source);
    for (const shape of await sharedShapes(ends)) {
      const there = targetShape(shape, target.fingerprint, markers);
      tables.push(await moveTable(ends, { shape, there, resumes: target.resumes, tell }));
    }
    const { files: of } = await storedAttachments(source.storage);
    const { findings, ...attachments } = await moveFiles(ends, source, to, target.fingerprint, (files) =>
      tell('copied', 'contents of attachments', files, of),
    );
    const auditTrails = await verifyTrails(target.storage);
    const [keyFrom, keyTo] = [keyPlace(source.storage, from), keyPlace(target.storage, to)];
    const hasKey = await signingKey.look(keyFrom, keyTo.file);
    if (hasKey) await signingKey.carry(keyFrom, keyTo);
    source.assertKept();
    target.assertKept();
    // Last: until then no service starts here.
    await endRecord(target.storage);
    return {
      resumed: target.resumes,
      rows: rowsIn(tables),
      tables,
      auditTrails,
      attachments,
      signingKey: hasKey,
      findings: [...findings, ...trailFindings(auditTrails)],
    };
  } finally {
    await target.close();
  }
};

/** What a move would do, and which rows it would be refused for. */
const previewed = async (
  source: MoveSource,
  { from, to, tell = () => undefined, verifyTrails, signingKey }: MoveOptions,
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
          const why = unstorable(shape, row);
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
      attachments: { ...(await storedAttachments(storage)), location: null },
      signingKey: await signingKey.look(keyPlace(storage, from), null),
      findings: [...findings, ...trailFindings(auditTrails)],
    };
  } finally {
    await target.close();
  }
};

/** Gives up what a move with `hold` has left at a store that is shared; null: nothing. In words for people. */
export const releaseStore = async (options: StoreOptions): Promise<{ store: string; released: string | null }> => {
  const store = storeName(options);
  if (storePlace(options).provider !== 'Postgres')
    throw new AcpError(
      'feature-not-available',
      `${store} is a file: a hold of it ends with the process that serves it, and nothing is left to release.`,
    );
  const { releaseHold } = await import('../postgres/store-hold.ts');
  const note = await releaseHold(postgresOptions(options));
  return {
    store,
    released:
      note === null ? null : `${note.state === 'Moved' ? 'was moved to' : 'was held for a move to'} ${note.target}`,
  };
};

/**
 * Copies a store to another place, of the same kind or another one, and compares both. The source is only read. Broken
 * off at any point, it leaves a target that no service starts on, and goes on when it is called again.
 * Design: docs/design/store-moves.md.
 */
export const moveStore = async (options: MoveOptions): Promise<MoveReport> => {
  const [from, to] = [storeName(options.from), storeName(options.to)];
  if (from === to) throw new AcpError('validation-failed', 'Both ends of the move are the same store.');
  const { dryRun = false, hold = false, signal = new AbortController().signal, waits = () => undefined } = options;
  const use: SourceUse = dryRun
    ? { kind: 'Preview' }
    : hold
      ? { kind: 'Held', target: to, signal, waits }
      : { kind: 'Alone' };
  const tell: TellMove = (...told) => {
    signal.throwIfAborted();
    options.tell?.(...told);
  };
  const source = await openMoveSource(options.from, use);
  let isMoved = false;
  try {
    await refuseUnready(source, options);
    // Before a folder is written to for the first time.
    await refuseWithoutRoom(source, options.to);
    await refuseContents(source, options.to, { writes: !dryRun });
    const toFile = storePlace(options.to).provider === 'Postgres' ? null : signingKeyFile(storeFile(options.to));
    await options.signingKey.look(keyPlace(source.storage, options.from), toFile);
    const outcome = await (dryRun ? previewed : moved)(source, { ...options, tell });
    isMoved = !dryRun;
    return { from, to, dryRun, ...outcome };
  } finally {
    await source.close(isMoved);
  }
};
