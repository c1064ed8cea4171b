/**
 * `npm test`: installs and builds what the tests need, then runs them on the pinned Node with its own test runner.
 * `npm test -- test/core` or a file or a glob picks tests; options such as `--test-name-pattern=CONF-14` are passed on.
 */
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { ensureExecutable, ensureInstalled, pinnedNode, root } from '../bin/setup.mjs';

const options = [
  '--test',
  '--test-reporter=spec',
  // Each file is a process of its own; two keep a small machine responsive, and more are not faster there.
  '--test-concurrency=2',
  '--test-timeout=120000',
];

const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith('-'));
const chosen = given.filter((argument) => !argument.startsWith('-'));
const isFolder = (path) => statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true;
const patterns = (chosen.length === 0 ? ['test'] : chosen).map((path) =>
  isFolder(path) ? `${path.replace(/\/+$/, '')}/**/*.test.{ts,tsx}` : path,
);
const needsExecutable = chosen.length === 0 || chosen.some((path) => path === 'test' || /\be2e\b|\*\*/.test(path));

const run = () =>
  new Promise((resolve, reject) => {
    const child = spawn(pinnedNode(), [...options, ...flags, ...patterns], { cwd: root, stdio: 'inherit' });
    // The terminal signals the whole group; the runner ends its own tests and then reports.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });

try {
  await ensureInstalled();
  if (needsExecutable) await ensureExecutable();
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`acp: ${error.message}\n`);
  process.exitCode = 1;
}
