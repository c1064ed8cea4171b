import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { copyContents } from '../content/backup.ts';
import { contentIndexStore } from '../content/content-index.store.ts';
import { contentFiles, contentFolder } from '../content/files.ts';
import { moveContents } from '../content/move.ts';
import { type AttachmentPlaces, defaultPlaces, markedSpaces, preferredPlace } from '../content/open-contents.ts';
import type { NamedContent } from '../content/rows.ts';
import { homeView, openViews } from '../content/views.ts';
import { hasTable } from '../migrate.ts';
import { openForReading } from '../open-for-reading.ts';
import type { OpenOptions, StoreOptions } from '../open-storage.ts';
import { hasStore } from '../server-maintenance.ts';
import type { RootStorage } from '../storage.ts';
import { storeFile, storePlace } from '../store-place.ts';
import type { MoveEnds } from './copy-table.ts';
import type { MoveSource } from './move-source.ts';
import type { TableShape } from './table-walk.ts';

/** What became of the files of attachments beside the source. */
export interface MovedContents {
  readonly files: number;
  readonly totalBytes: number;
  /** Where they lie at the target, for people. */
  readonly location: string | null;
  readonly findings: readonly string[];
}

const noContents: MovedContents = { files: 0, totalBytes: 0, location: null, findings: [] };

/** A beginning of the names of contents that this move gives, so that they are told from those that were copied. */
const ownPrefix = (fingerprint: string): string => `${fingerprint.slice(0, 8)}-${fingerprint.slice(8, 12)}`;

const markersIn = async (storage: RootStorage): Promise<ReadonlyMap<string, string>> => {
  if (!(await hasTable(storage, 'attachment_places'))) return new Map();
  const rows = await storage.db.selectFrom('attachment_places').selectAll().execute();
  return new Map(rows.map((row) => [row.kept_in, row.marker]));
};

/**
 * A table as the target has it: what the move brings there from beside the source has rows of its own, which stay when it
 * is gone on with.
 */
export const targetShape = (
  shape: TableShape,
  fingerprint: string,
  sourceMarkers: ReadonlyMap<string, string>,
): TableShape => {
  const begins = (column: string) => sql<boolean>`substr(${sql.ref(column)}, 1, 13) = ${ownPrefix(fingerprint)}`;
  if (shape.table === 'attachment_contents') return { ...shape, ownRows: begins('id') };
  if (shape.table === 'attachment_chunks') return { ...shape, ownRows: begins('content_id') };
  if (shape.table !== 'attachment_places') return shape;
  const copied = [...sourceMarkers.keys()];
  return {
    ...shape,
    ownRows: copied.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`kept_in not in (${sql.join(copied)})`,
  };
};

export const sourceMarkers = ({ storage }: MoveSource): Promise<ReadonlyMap<string, string>> => markersIn(storage);

const hasFiles = async (path: string): Promise<boolean> => {
  for await (const _place of contentFiles(contentFolder(path)).places()) return true;
  return false;
};

/** Whether files lie beside the source that the target has no folder for. */
const leavesFiles = async ({ path }: MoveSource, to: StoreOptions): Promise<boolean> =>
  path !== null && storePlace(to).provider === 'Postgres' && (await hasFiles(path));

const markersAt = async (options: StoreOptions): Promise<ReadonlyMap<string, string>> => {
  if (!(await hasStore(options))) return new Map();
  const { storage, close } = await openForReading(options);
  try {
    return await markersIn(storage);
  } finally {
    await close();
  }
};

const settingOf = { Folder: 'Folder', S3: 'S3:Bucket' } as const;

/** Throws while nothing is written yet where the files beside the source have no place to go to. */
export const refuseContents = async (
  source: MoveSource,
  to: StoreOptions,
  { writes }: { readonly writes: boolean },
): Promise<void> => {
  if (!(await leavesFiles(source, to))) return;
  const places: AttachmentPlaces = to.attachments ?? defaultPlaces;
  const preferred = preferredPlace(places, false);
  if (preferred === 'Database' || preferred === 'Home') return;
  const spaces = await markedSpaces(places);
  try {
    const space = spaces.find(({ keptIn }) => keptIn === preferred);
    if (space === undefined)
      throw new AcpError(
        'validation-failed',
        `Service:Attachments:Store is ${preferred}, and Service:Attachments:${settingOf[preferred]} is not set: the attachments beside the source have no place to go to.`,
      );
    const marker = await space.marker();
    const known = [await sourceMarkers(source), await markersAt(to)].map((markers) => markers.get(preferred));
    if (marker !== null && !known.includes(marker))
      throw new AcpError(
        'validation-failed',
        `${space.location} has the attachments of another store: configure a place of its own for this one.`,
      );
    if (writes) await space.probeWrite();
  } finally {
    for (const space of spaces) space.close();
  }
};

/** Brings the files beside the source to the place that is configured for the target, and compares each with its hash. */
const bringFiles = async (
  { to }: MoveEnds,
  folder: string,
  { attachments = defaultPlaces, now, log }: OpenOptions,
  fingerprint: string,
  progress: (contents: number) => void,
): Promise<MovedContents> => {
  const prefix = ownPrefix(fingerprint);
  const newId = (): string => `${prefix}${randomUUID().slice(prefix.length)}`;
  const opened = await openViews({ storage: to, homeFolder: null, places: attachments, now, log, newId });
  try {
    const preferred = preferredPlace(attachments, false);
    const target = opened.views.find(({ name }) => name === preferred);
    if (target === undefined) throw new Error(`There is no place of the kind ${preferred}.`);
    const home = homeView(folder);
    const index = to.stores(contentIndexStore);
    let sizeBytes = 0;
    let totalBytes = 0;
    /** What lies elsewhere has come with its row, or stays. */
    const leaves = async ({ place }: NamedContent): Promise<boolean> => {
      const file = await home.raw.open(place);
      await file?.dispose();
      sizeBytes = file?.sizeBytes ?? 0;
      return file === null && (await index.copiesAt(place)).some(({ id }) => !id.startsWith(prefix));
    };
    const { contents, findings } = await moveContents({
      ...{ storage: to, target, sources: [home], leaves },
      progress(count) {
        totalBytes += sizeBytes;
        progress(count);
      },
    });
    return { files: contents, totalBytes, location: contents === 0 ? null : target.location, findings };
  } finally {
    await opened.close();
  }
};

/** Files beside the source. Bytes that are rows have moved by now, and those in a folder or a bucket stay where they are. */
export const moveFiles = async (
  ends: MoveEnds,
  source: MoveSource,
  to: OpenOptions,
  fingerprint: string,
  progress: (contents: number) => void,
): Promise<MovedContents> => {
  if (source.path === null) return noContents;
  const fromFolder = contentFolder(source.path);
  if (storePlace(to).provider === 'Postgres') return bringFiles(ends, fromFolder, to, fingerprint, progress);
  const toFolder = contentFolder(storeFile(to));
  const { files, totalBytes, findings } = await copyContents({ ...ends, fromFolder, toFolder });
  return { files, totalBytes, location: files === 0 ? null : toFolder, findings };
};
