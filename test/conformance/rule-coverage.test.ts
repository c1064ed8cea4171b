import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { coverageText, ruleCoverage } from './rule-coverage.ts';
import { areas as allAreas, elsewhere } from './rules.ts';

const areas = { RUN: { title: 'Runs', rules: [1, 2, 3, 4] }, JOB: { title: 'Jobs', rules: [12] } };

/** A file of tests of both kinds: such as prove something, and such as only look like it. */
const source = `
import { describe, test as proof } from 'node:test';
import { areas } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'rules.ts')).href)};

const elsewhere = { 'RUN-3': 'test("RUN-3 a reason is no test")' };
const forEachTransport = (name, body) => { for (const kind of ['a', 'b']) proof(\`\${name} [\${kind}]\`, body); };
const fails = () => { throw new Error('The body of a listed test was run.'); };

// test('RUN-4 a comment is no test', fails);
for (const id of ['RUN-1']) proof(\`\${id} has its name from a loop\`, fails);
forEachTransport('JOB-12 by a helper', fails);
describe('RUN-2 as a whole', () => { proof('has parts', { timeout: 10 }, fails); });
proof('RUN-3 is skipped', { skip: 'not on this machine' }, fails);
proof('RUN-3 is to be written', { todo: true }, fails);
proof.skip('RUN-3 is skipped in another way', fails);
proof('RUN-4 has no body');
describe('RUN-4 as a whole is skipped', { skip: true }, () => { proof('has parts', fails); });
export { areas, elsewhere };
`;

const writeSource = (t: TestContext, text: string): string => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-listed-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'some.test.mjs');
  writeFileSync(file, text);
  return file;
};

const lines = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

const beside = (name: string): string => join(import.meta.dirname, name);

test('tests are listed by the names that they register, without running one', (t) => {
  const file = writeSource(t, source);
  const listed = execFileSync(process.execPath, [beside('list-tests.ts'), file], { encoding: 'utf8' });
  assert.deepEqual(lines(listed), [
    'RUN-1 has its name from a loop',
    'JOB-12 by a helper [a]',
    'JOB-12 by a helper [b]',
    'RUN-2 as a whole has parts',
  ]);
});

test('of tests that were run those count that passed', (t) => {
  const file = writeSource(
    t,
    `
    import { describe, test } from 'node:test';
    test('RUN-1 passes', () => undefined);
    test('RUN-2 fails', () => { throw new Error('It fails.'); });
    test('RUN-3 is skipped at once', { skip: true }, () => undefined);
    test('RUN-3 is skipped in its body', (t) => t.skip('not here'));
    describe('RUN-4 as a whole', () => { test('JOB-12 a part', () => undefined); });
  `,
  );
  const report = join(file, '../ran');
  const destination = [`--test-reporter=${beside('ran-tests.reporter.ts')}`, `--test-reporter-destination=${report}`];
  // Without the variable that tells a process that it is one file of a test run.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const run = () => execFileSync(process.execPath, ['--test', ...destination, file], { env, stdio: 'ignore' });
  assert.throws(run, 'one of them fails');
  const { overHttpAlone } = ruleCoverage({
    areas,
    reasons: {},
    overHttp: lines(readFileSync(report, 'utf8')) as string[],
    npmTest: [],
  });
  assert.deepEqual(overHttpAlone, ['RUN-1', 'JOB-12']);
});

test('three numbers: over HTTP, by npm test, by neither; a reason is no proof', () => {
  const reasons = { 'RUN-3': 'comes later', 'RUN-2': 'is out of date', 'RUN-9': 'is no rule' };
  const coverage = ruleCoverage({
    areas,
    reasons,
    overHttp: ['RUN-1 RUN-2 by one scenario', 'RUN-11 is another rule', 'XRUN-4 is none'],
    npmTest: ['RUN-1 again [http]', 'JOB-12 here'],
  });
  assert.deepEqual(
    [coverage.both, coverage.overHttpAlone, coverage.npmTestAlone, coverage.neither],
    [['RUN-1'], ['RUN-2'], ['JOB-12'], ['RUN-3', 'RUN-4']],
  );
  assert.deepEqual([coverage.unexplained, coverage.stale], [['RUN-4'], ['RUN-2', 'RUN-9']]);
  const text = coverageText(coverage, reasons);
  assert.match(text, /^Runs +4 rules +2 over HTTP +1 npm test +2 neither$/m);
  assert.match(
    text,
    /^Of 5 rules:\n +2 are proved over HTTP .*\n +2 are proved by .*\(1 of them by both\).*\n +2 are/m,
  );
  assert.match(text, /not by `npm test`: RUN-2\n/);
  assert.match(text, /Without a test:\n {2}RUN-3: comes later\n/);
  assert.match(text, /without a reason: RUN-4$/m);
  assert.match(text, /though they have a test: RUN-2, RUN-9$/m);
});

test('every reason is of a rule that this version promises', () => {
  const { neither, stale } = ruleCoverage({ areas: allAreas, reasons: elsewhere, overHttp: [], npmTest: [] });
  assert.deepEqual(stale, []);
  assert.equal(neither.length, Object.values(allAreas).flatMap(({ rules }) => rules).length);
});
