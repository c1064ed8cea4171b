import { open, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { SkillFile } from './skill-folder.ts';

export interface LeftOut {
  readonly path: string;
  /** Special: a pipe or a device. Hidden: its name starts with a dot; generated: made by programs. What is below such a folder is not looked at. */
  readonly reason: 'special' | 'outside' | 'unreadable' | 'hidden' | 'generated';
}

export interface FolderFiles {
  readonly files: readonly SkillFile[];
  readonly leftOut: readonly LeftOut[];
}

/** More files, deeper folders or more text than any skill has: the folder is something else. */
export class FolderTooLargeError extends Error {
  constructor(folder: string) {
    super(`${folder} has more than a skill can hold.`);
    this.name = 'FolderTooLargeError';
  }
}

const maxEntries = 2000;
const maxDepth = 16;
const maxTextBytes = 33_554_432;
// Enough to see that a file is no text, as tools for text do.
const sampleBytes = 8192;
// Made by programs, never a part of what somebody published.
const generated = new Set(['node_modules', '__pycache__']);

/** True for the folder itself and everything below it; both are real paths. */
export const isWithin = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

const decode = (bytes: Uint8Array): string | null => {
  if (bytes.subarray(0, sampleBytes).includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    // The only way to ask: bytes that are no UTF-8 throw.
    if (error instanceof TypeError) return null;
    throw error;
  }
};

type Content = Pick<SkillFile, 'text' | 'encoding'>;

/** The content of a file; what is no text comes in base64. A file over the bound is not read. */
const readContent = async (path: string, folder: string): Promise<Content> => {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > maxTextBytes) throw new FolderTooLargeError(folder);
    const bytes = await file.readFile();
    const text = decode(bytes);
    return text === null ? { text: bytes.toString('base64'), encoding: 'base64' } : { text };
  } finally {
    await file.close();
  }
};

type Entry =
  | { readonly kind: 'file'; readonly content: Content }
  | { readonly kind: 'folder' }
  | { readonly kind: LeftOut['reason'] };

const readEntry = async (path: string, folder: string, root: string): Promise<Entry> => {
  try {
    const real = await realpath(path);
    if (!isWithin(root, real)) return { kind: 'outside' };
    const about = await stat(real);
    if (about.isDirectory()) return { kind: 'folder' };
    // A pipe or a device would be read for ever.
    return about.isFile() ? { kind: 'file', content: await readContent(real, folder) } : { kind: 'special' };
  } catch (error) {
    if (error instanceof FolderTooLargeError) throw error;
    return { kind: 'unreadable' };
  }
};

const passedOver = (name: string): 'hidden' | 'generated' | null => {
  if (name.startsWith('.')) return 'hidden';
  return generated.has(name) ? 'generated' : null;
};

/**
 * Files below a folder, by relative path. `root` is the real path that every file must resolve into; what is hidden (it
 * may hold secrets), no file, or leads outside is left out and told.
 */
export const readFolderFiles = async (folder: string, root: string): Promise<FolderFiles> => {
  const files: SkillFile[] = [];
  const leftOut: LeftOut[] = [];
  let entriesSeen = 0;
  let textBytes = 0;
  const count = (entry: Entry): void => {
    entriesSeen += 1;
    textBytes += entry.kind === 'file' ? entry.content.text.length : 0;
    if (entriesSeen > maxEntries || textBytes > maxTextBytes) throw new FolderTooLargeError(folder);
  };
  const walk = async (below: string, depth: number): Promise<void> => {
    if (depth > maxDepth) throw new FolderTooLargeError(folder);
    for (const name of await readdir(join(folder, below))) {
      const path = below === '' ? name : `${below}/${name}`;
      const reason = passedOver(name);
      if (reason !== null) {
        leftOut.push({ path, reason });
        continue;
      }
      const entry = await readEntry(join(folder, path), folder, root);
      count(entry);
      if (entry.kind === 'folder') await walk(path, depth + 1);
      else if (entry.kind === 'file') files.push({ path, ...entry.content });
      else leftOut.push({ path, reason: entry.kind });
    }
  };
  await walk('', 0);
  return { files, leftOut };
};
