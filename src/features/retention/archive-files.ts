import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { createTurns } from '../../core/event-loop-turns.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFileMode, privateFolderMode } from '../../core/files/private-file.ts';
import type { ArchiveBatch, ArchiveSink } from './archive.ts';

// A row is some hundred bytes: as text they are packed and written by the hundred.
const chunkChars = 65_536;

/** The rows as JSON Lines, and the hash of all of them. */
const linesOf = async (rows: ArchiveBatch['rows']): Promise<{ chunks: Buffer[]; sha256: string }> => {
  const turn = createTurns();
  const digest = createHash('sha256');
  const chunks: Buffer[] = [];
  let waiting = '';
  for (const [index, row] of rows.entries()) {
    waiting += `${JSON.stringify(row)}\n`;
    if (waiting.length < chunkChars && index < rows.length - 1) continue;
    const chunk = Buffer.from(waiting);
    waiting = '';
    digest.update(chunk);
    chunks.push(chunk);
    await turn();
  }
  return { chunks, sha256: digest.digest('hex') };
};

// What every file system tells apart from all other such names: no case, and no final dot.
const plainName = /^[a-z0-9._-]*[a-z0-9_-]$/;

/**
 * The folder of a tenant. A tenant's name may be `..`, which no name with a prefix is. Where a file system takes `BLUE`
 * for `blue`, or `blue.` for it, the two must not share a folder either: such names get a hash behind a sign that no
 * tenant's name has.
 */
const folderOf = (tenantId: string): string =>
  plainName.test(tenantId)
    ? `tenant-${tenantId}`
    : `tenant-${tenantId}~${createHash('sha256').update(tenantId).digest('hex').slice(0, 16)}`;

/**
 * Writes each batch as a file of its own, JSON Lines in gzip: `tenant-<id>/<target>/<day>/<hash>.jsonl.gz`. The name
 * is the hash of the content, so that a batch that comes twice is one file; it is there only when it is whole and on
 * the disk.
 */
export const archiveFiles = (folder: string, now: () => number): ArchiveSink => ({
  async archive({ tenantId, target, rows }, signal) {
    const { chunks, sha256 } = await linesOf(rows);
    const day = new Date(now()).toISOString().slice(0, 10);
    const place = join(folder, folderOf(tenantId), target, day);
    makeFolder(place, privateFolderMode);
    const path = join(place, `${sha256.slice(0, 32)}.jsonl.gz`);
    const draft = `${path}.partial`;
    try {
      // A draft that a killed process left behind may have another mode.
      await rm(draft, { force: true });
      const file = createWriteStream(draft, { flags: 'wx', mode: privateFileMode, flush: true });
      await pipeline(Readable.from(chunks), createGzip(), file, { signal });
      signal.throwIfAborted();
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  },
});
