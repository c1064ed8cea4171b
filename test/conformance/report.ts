/**
 * Which rules are proved, and by which suite. What counts is the names of tests: those of the conformance suite that
 * ran and passed, where a file of `ran-tests.reporter.ts` is given, and those that the test files register.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { coverageText, ruleCoverage } from './rule-coverage.ts';
import { areas, elsewhere } from './rules.ts';

const tests = resolve(import.meta.dirname, '..');

const filesBelow = (pattern: RegExp): string[] =>
  readdirSync(tests, { recursive: true, encoding: 'utf8' })
    .filter((path) => pattern.test(path))
    .map((path) => join(tests, path))
    .sort();

const namesIn = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as string);

/** In a process of its own: what test files load and hold open ends with it. */
const listed = (files: readonly string[]): string[] => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, 'list-tests.ts'), ...files],
    { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  if (status !== 0) throw new Error(`The tests could not be listed:\n${stderr}`);
  return namesIn(stdout);
};

const [ran] = process.argv.slice(2);
const overHttp = ran === undefined ? listed(filesBelow(/\.conformance\.ts$/)) : namesIn(readFileSync(ran, 'utf8'));
const coverage = ruleCoverage({
  areas,
  reasons: elsewhere,
  overHttp,
  npmTest: listed(filesBelow(/\.test\.tsx?$/)),
});
console.log(`\n${coverageText(coverage, elsewhere)}`);
process.exitCode = coverage.unexplained.length + coverage.stale.length > 0 ? 1 : 0;
