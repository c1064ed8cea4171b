import { existsSync } from 'node:fs';
import { stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sql } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { contentFiles, contentFolder } from '../content/files.ts';
import { defaultPlaces, preferredPlace } from '../content/open-contents.ts';
import { openForReading } from '../open-for-reading.ts';
import type { StoreOptions } from '../open-storage.ts';
import { hasStore } from '../server-maintenance.ts';
import type { RootStorage } from '../storage.ts';
import { storeFile, storePlace } from '../store-place.ts';
import { unfinishedMove } from './move-record.ts';
import type { MoveSource } from './move-source.ts';

/** The different contents of attachments. */
export const storedAttachments = async ({
  db,
}: RootStorage): Promise<{ readonly files: number; readonly totalBytes: number }> => {
  const contents = db.selectFrom('attachments').select(['tenant_id', 'sha256', 'byte_size']).distinct().as('content');
  const row = await db
    .selectFrom(contents)
    .select([sql<number>`count(*)`.as('files'), sql<number>`coalesce(sum(byte_size), 0)`.as('bytes')])
    .executeTakeFirstOrThrow();
  return { files: Number(row.files), totalBytes: Number(row.bytes) };
};

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1_048_576)} MiB`;

/** Of a folder, or of the nearest one above it. */
const freeBytes = async (path: string): Promise<number> => {
  let folder = path;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/** Of the files beside a store, as they lie there. */
const bytesBeside = async (storePath: string): Promise<number> => {
  const folder = contentFolder(storePath);
  let bytes = 0;
  for await (const place of contentFiles(folder).places()) bytes += (await stat(join(folder, place))).size;
  return bytes;
};

const isBegun = async (target: StoreOptions): Promise<boolean> => {
  if (!(await hasStore(target))) return false;
  const { storage, close } = await openForReading(target);
  try {
    return (await unfinishedMove(storage)) !== null;
  } finally {
    await close();
  }
};

const refuseBelow = async (folder: string, needed: number, place: string, what: string): Promise<void> => {
  const free = await freeBytes(folder);
  if (free >= needed) return;
  throw new AcpError(
    'store-unavailable',
    `The disk of ${place} has ${megabytes(free)} free, and ${what} ${megabytes(needed)}.`,
  );
};

/** What a server has left it tells nobody; the folder that attachments go to is on a disk that can be asked. */
const refuseWithoutFolderRoom = async ({ path }: MoveSource, to: StoreOptions): Promise<void> => {
  const places = to.attachments ?? defaultPlaces;
  if (path === null || places.folder === null || preferredPlace(places, false) !== 'Folder') return;
  const needed = await bytesBeside(path);
  if (needed === 0 || (await isBegun(to))) return;
  const what = `the attachments beside ${path} take`;
  await refuseBelow(places.folder, needed, `the folder ${places.folder}`, what);
};

/**
 * Throws `store-unavailable` where nothing is at the target yet, and the disk of its file, or of the folder for the
 * attachments beside the source, has less room than they take.
 */
export const refuseWithoutRoom = async (source: MoveSource, to: StoreOptions): Promise<void> => {
  if (storePlace(to).provider === 'Postgres') return refuseWithoutFolderRoom(source, to);
  const path = storeFile(to);
  if (existsSync(path)) return;
  const { storage } = source;
  const needed = (await storage.dialect.size()).totalBytes + (await storedAttachments(storage)).totalBytes;
  await refuseBelow(dirname(path), needed, path, 'the store takes');
};
