/**
 * `npm test`: installs and builds what the tests need, then runs them on the pinned Node with its own test runner.
 * `npm test -- test/core` or a file or a glob picks tests; options such as `--test-name-pattern=CONF-14` are passed on,
 * and a test's name begins with its file's path where files share a process (`groups.mjs`).
 * Design: docs/design/testing.md.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import process from 'node:process';
import { ensureExecutable, ensureInstalled, pinnedNode, root } from '../bin/setup.mjs';
import { groupFiles, testFilesBelow, writeEntries } from './groups.mjs';
import { needStores, startPostgres } from './postgres.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const options = [
  '--test',
  '--test-reporter=spec',
  // One more than there are cores: tests that wait for a program or a time leave theirs to another.
  `--test-concurrency=${availableParallelism() + 1}`,
  '--test-timeout=120000',
];

const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith('-'));
const chosen = given.filter((argument) => !argument.startsWith('-'));
const isFolder = (path) => statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true;
const folders = (chosen.length === 0 ? ['test'] : chosen).filter(isFolder);
const patterns = chosen.filter((path) => !isFolder(path));
const needsExecutable = chosen.length === 0 || chosen.some((path) => path === 'test' || /\be2e\b|\*\*/.test(path));

const run = (entries, variables) =>
  new Promise((resolve, reject) => {
    const child = spawn(pinnedNode(), [...options, ...flags, ...entries], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, ...variables, NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'acp-tests') },
    });
    // The terminal signals the whole group; the runner ends its own tests and then reports.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });

try {
  await ensureInstalled();
  if (needsExecutable) await ensureExecutable();
  const scratch = mkdtempSync(join(temporaryFolder(), 'acp-tests-'));
  try {
    // As any folder for temporary files: some tests start programs as another user.
    chmodSync(scratch, 0o1777);
    const files = new Set(folders.flatMap((folder) => testFilesBelow(root, relative(root, resolve(root, folder)))));
    const entries = writeEntries(root, join(scratch, 'entries'), groupFiles(root, files));
    const variables = { TMPDIR: scratch };
    const postgres = needStores(root, [...files, ...patterns]) ? await startPostgres(variables) : null;
    try {
      process.exitCode = await run([...entries, ...patterns], { ...variables, ...postgres?.variables });
    } finally {
      await postgres?.stop();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
} catch (error) {
  process.stderr.write(`acp: ${error.message}\n`);
  process.exitCode = 1;
}
