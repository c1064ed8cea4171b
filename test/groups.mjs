/**
 * Puts test files together that run in one process, one after the other: the tree of modules is then loaded, and its
 * hot code compiled, some twenty times instead of some three hundred. Each file is a suite named by its path.
 * A file that cannot share a process says so, and why, in a line that begins with `// A process of its own:`.
 */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const testFile = /\.test\.tsx?$/;
const ownProcess = /^\/\/ A process of its own: \S/m;
/** What a process takes: fewer processes load less, more of them end more evenly. */
const groupBytes = 120_000;
/** Their tests start programs and wait for them: begun first, they are not what everybody waits for at the end. */
const first = ['test/e2e/', 'test/cli/', 'test/tui/'];
/**
 * Their units of work on PostgreSQL have effects beside their stores, or say something: each loses its first attempt, as if
 * another transaction had been in the way (`ACP_REPEAT_UNITS`, decision 148).
 */
const repeated = ['approvals', 'audit', 'emergency', 'tenants'].map((feature) => `test/features/${feature}/`);

/** The test files below a folder, as paths from the root. */
export const testFilesBelow = (root, folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((path) => testFile.test(path))
    .map((path) => join(folder, path).replaceAll('\\', '/'))
    .sort();

const isRepeated = (file) => repeated.some((folder) => file.startsWith(folder));

const rank = (file) => {
  if (isRepeated(file)) return first.length;
  const position = first.findIndex((folder) => file.startsWith(folder));
  return position < 0 ? first.length + 1 : position;
};

/** The files of each process; in the order in which they are started. */
export const groupFiles = (root, files) => {
  const groups = [];
  let open = null;
  for (const file of [...files].sort((left, right) => rank(left) - rank(right))) {
    const path = join(root, file);
    if (ownProcess.test(readFileSync(path, 'utf8'))) {
      groups.push([file]);
      continue;
    }
    const { size } = statSync(path);
    if (open === null || open.rank !== rank(file) || open.bytes + size > groupBytes) {
      open = { rank: rank(file), bytes: 0, files: [] };
      groups.push(open.files);
    }
    open.bytes += size;
    open.files.push(file);
  }
  return groups;
};

/**
 * The files are loaded one after the other, each on behalf of its suite: of modules that load side by side and wait for
 * one another, node:test would take all tests for those of one suite.
 */
const entryHead = `import { AsyncResource } from 'node:async_hooks';
import { describe } from 'node:test';
let loaded = Promise.resolve();
const suite = (file, url) =>
  describe(file, () => {
    const load = AsyncResource.bind(() => import(url));
    const mine = loaded.then(load);
    loaded = mine.catch(() => undefined);
    return mine;
  });
`;

/** Writes an entry for each group; node:test starts them in the order of their names. */
export const writeEntries = (root, folder, groups) => {
  mkdirSync(folder, { recursive: true });
  return groups.map((files, position) => {
    const suites = files.map((file) => {
      const url = pathToFileURL(join(root, file)).href;
      return `suite(${JSON.stringify(file)}, ${JSON.stringify(url)});\n`;
    });
    const entry = join(folder, `${String(position + 1).padStart(3, '0')}.mjs`);
    const repeats = files.some(isRepeated) ? "process.env.ACP_REPEAT_UNITS = '1';\n" : '';
    writeFileSync(entry, `${entryHead}${repeats}${suites.join('')}`);
    return entry;
  });
};
