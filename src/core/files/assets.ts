import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, sep } from 'node:path';
import { getAssetKeys, getRawAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { environment } from '../environment.ts';
import { cacheFolder, extractFile } from './asset-extraction.ts';

const vectorLibraries: Readonly<Record<string, string>> = { darwin: 'vec0.dylib', win32: 'vec0.dll' };

/** SQLite derives an extension's entry point from its file name, so the library keeps the one it was built with. */
const vectorLibrary = vectorLibraries[process.platform] ?? 'vec0.so';

/** The renderer of the API reference page, under the names that the executable carries it by. */
const rendererFiles: Readonly<Record<string, string>> = {
  'docs-renderer.js': 'swagger-ui-dist/swagger-ui-bundle.js',
  'docs-renderer.css': 'swagger-ui-dist/swagger-ui.css',
};

/** True in the single executable, false in a clone. */
export const isPackaged = (): boolean => isSea();

/** The repository: above the bundle in `dist`, or three folders above this source file. */
const cloneRoot = (): string => {
  const here = import.meta.dirname;
  return basename(here) === 'dist' ? dirname(here) : join(here, '..', '..', '..');
};

const clonePath = (name: string): string => {
  const { resolve } = createRequire(import.meta.url);
  if (name === 'better_sqlite3.node') {
    const addon = `${process.platform}-${process.arch}.node`;
    return join(dirname(resolve('better-sqlite3/package.json')), 'prebuilds', addon);
  }
  if (name === vectorLibrary) {
    const platform = process.platform === 'win32' ? 'windows' : process.platform;
    return resolve(`sqlite-vec-${platform}-${process.arch}/${vectorLibrary}`);
  }
  const renderer = rendererFiles[name];
  return renderer === undefined ? join(cloneRoot(), 'assets', name) : resolve(renderer);
};

// The executable's own memory, not a copy: it is never written to.
const embedded = (name: string): Buffer => Buffer.from(getRawAsset(name));

/** Content of a file below `assets/`, named with forward slashes such as `samples/agent.yaml`. */
export const readAsset = (name: string): Buffer => (isPackaged() ? embedded(name) : readFileSync(clonePath(name)));

export const readAssetText = (name: string): string => readAsset(name).toString('utf8');

/** Names of all files below a folder of `assets/`, sorted; empty when there is no such folder. */
export const listAssets = (folder: string): readonly string[] => {
  const prefix = `${folder}/`;
  if (isPackaged())
    return getAssetKeys()
      .filter((name) => name.startsWith(prefix))
      .sort();
  const root = join(cloneRoot(), 'assets', folder);
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(root, path)).isFile())
    .map((path) => prefix + path.split(sep).join('/'))
    .sort();
};

const extracted = new Map<string, string>();

const packagedPath = (name: string): string =>
  extracted.getOrInsertComputed(name, () => {
    // The build id holds a hash of all assets, so that no two builds share a folder.
    const folder = join(cacheFolder(environment()), embedded('build-id').toString('utf8'));
    return extractFile(folder, name, embedded(name));
  });

/**
 * Path of an asset on disk, for what can only be loaded from there: a file below `assets/`, SQLite's addon
 * `better_sqlite3.node`, or the vector extension `vec0`. The executable unpacks it on first use.
 */
export const assetPath = (name: string): string => {
  const file = name === 'vec0' ? vectorLibrary : name;
  return isPackaged() ? packagedPath(file) : clonePath(file);
};

/**
 * Path of a worker thread's entry, given as `new URL('./name.worker.ts', import.meta.url)`: the source itself, or the
 * file that the build made of it.
 */
export const workerPath = (source: URL): string => {
  const file = basename(source.pathname).replace(/\.ts$/, '.mjs');
  if (isPackaged()) return packagedPath(file);
  return import.meta.filename.endsWith('.ts') ? fileURLToPath(source) : join(import.meta.dirname, file);
};
