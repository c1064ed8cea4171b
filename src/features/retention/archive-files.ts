import { createHash } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ArchiveSink } from './archive.ts';

/**
 * Writes each batch as a file of its own, JSON Lines in gzip: `tenant-<slug>/<target>/<day>/<hash>.jsonl.gz`. The name
 * is the hash of the content, so that a batch that comes twice is one file; it is there only when it is whole and on
 * the disk.
 */
export const archiveFiles = (folder: string, now: () => number): ArchiveSink => ({
  async archive({ tenantId, target, rows }, signal) {
    const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const name = createHash('sha256').update(text).digest('hex').slice(0, 32);
    const day = new Date(now()).toISOString().slice(0, 10);
    // A tenant's name may be `..`, which no name with a prefix is.
    const place = join(folder, `tenant-${tenantId}`, target, day);
    await mkdir(place, { recursive: true, mode: 0o700 });
    const path = join(place, `${name}.jsonl.gz`);
    const draft = `${path}.partial`;
    try {
      const bytes = await promisify(gzip)(text);
      const file = await open(draft, 'w', 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      signal.throwIfAborted();
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  },
});
