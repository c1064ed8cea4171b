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
/**
 * Their tests start programs and wait for them. They are begun among those that compute, which have the processor
 * meanwhile, and none of them is begun at the end, where everybody would wait for it.
 */
const waiting = ['test/fleet/', 'test/e2e/', 'test/cli/', 'test/tui/'];
/** A byte of them takes longer. */
const waitingGroupBytes = 40_000;
/** How much of all else has been begun when the last of them is. */
const waitingShare = 0.8;
/**
 * Their units of work on PostgreSQL have effects beside their stores, or say something: each loses its first attempt, as if
 * another transaction had been in the way (`ACP_REPEAT_UNITS`, docs/design/transactions.md).
 */
const repeated = ['approvals', 'audit', 'emergency', 'tenants'].map((feature) => `test/features/${feature}/`);

/** The test files below a folder, as paths from the root. */
export const testFilesBelow = (root, folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((path) => testFile.test(path))
    .map((path) => join(folder, path).replaceAll('\\', '/'))
    .sort();

const isRepeated = (file) => repeated.some((folder) => file.startsWith(folder));

/** Files of the same rank may share a process. */
const rankOf = (file) => {
  const position = waiting.findIndex((folder) => file.startsWith(folder));
  if (position >= 0) return position;
  return isRepeated(file) ? waiting.length : waiting.length + 1;
};

const together = (root, files) => {
  const groups = [];
  let open = null;
  for (const file of [...files].sort((left, right) => rankOf(left) - rankOf(right))) {
    const path = join(root, file);
    const rank = rankOf(file);
    const { size } = statSync(path);
    if (ownProcess.test(readFileSync(path, 'utf8'))) {
      groups.push({ rank, bytes: size, files: [file] });
      continue;
    }
    const most = rank < waiting.length ? waitingGroupBytes : groupBytes;
    if (open === null || open.rank !== rank || open.bytes + size > most) {
      open = { rank, bytes: 0, files: [] };
      groups.push(open);
    }
    open.bytes += size;
    open.files.push(file);
  }
  return groups;
};

const bytesOf = (groups) => groups.reduce((sum, { bytes }) => sum + bytes, 0);

/** Both in their own order, each begun as far as the other one is, and the first ones somewhat earlier. */
const among = (some, others) => {
  const share = (bytesOf(some) / Math.max(bytesOf(others), 1)) * (1 / waitingShare);
  const mixed = [];
  let ahead = 0;
  let next = 0;
  for (const group of some) {
    mixed.push(group);
    ahead += group.bytes;
    while (next < others.length && ahead > 0) {
      ahead -= others[next].bytes * share;
      mixed.push(others[next]);
      next += 1;
    }
  }
  return [...mixed, ...others.slice(next)];
};

/** The files of each process; in the order in which they are started. */
export const groupFiles = (root, files) => {
  const groups = together(root, files);
  const waits = ({ rank }) => rank < waiting.length;
  return among(
    groups.filter(waits),
    groups.filter((group) => !waits(group)),
  ).map((group) => group.files);
};

/**
 * The files are loaded one after the other, each on behalf of its suite: of modules that load side by side and wait for
 * one another, node:test would take all tests for those of one suite.
 */
const entryHead = `import { AsyncResource, createHook } from 'node:async_hooks';
import { describe } from 'node:test';
let loaded = Promise.resolve();
const suite = (file, url) =>
  describe(file, () => {
    const load = AsyncResource.bind(() => import(url));
    const mine = loaded.then(load);
    loaded = mine.catch(() => undefined);
    return mine;
  });
const hooks = Object.getPrototypeOf(createHook({}));
const { enable } = hooks;
const enabled = [];
hooks.enable = function () {
  enabled.push(this);
  return enable.call(this);
};
`;
/**
 * node:test follows every promise to the test that made it: it is how a test finds the suite around it while files are
 * loaded. Afterwards it tells only whose an error is that nobody caught, which then fails the process with its stack all the
 * same, and costs a tenth of the processor time of tests.
 */
const entryTail = `hooks.enable = enable;
void loaded.then(() => enabled.forEach((hook) => hook.disable()));
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
    writeFileSync(entry, `${entryHead}${repeats}${suites.join('')}${entryTail}`);
    return entry;
  });
};
