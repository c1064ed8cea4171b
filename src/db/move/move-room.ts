import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sql } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import { type StoreOptions, storeFile } from '../open-storage.ts';
import type { RootStorage } from '../storage.ts';
import { storePlace } from '../store-place.ts';
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

/** Of the folder that a file is to be in, or of the nearest one above it. */
const freeBytes = async (path: string): Promise<number> => {
  let folder = dirname(path);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/** Throws `store-unavailable` where the target is a file, none of it is there yet, and its disk is smaller than the source. */
export const refuseWithoutRoom = async ({ storage }: MoveSource, to: StoreOptions): Promise<void> => {
  // What a server has left it tells nobody.
  if (storePlace(to).provider === 'Postgres') return;
  const path = storeFile(to);
  if (existsSync(path)) return;
  const needed = (await storage.dialect.size()).totalBytes + (await storedAttachments(storage)).totalBytes;
  const free = await freeBytes(path);
  if (free >= needed) return;
  throw new AcpError(
    'store-unavailable',
    `The disk of ${path} has ${megabytes(free)} free, and the store takes ${megabytes(needed)}.`,
  );
};
