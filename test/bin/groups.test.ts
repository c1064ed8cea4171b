import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';

interface Groups {
  testFilesBelow(root: string, folder: string): string[];
  groupFiles(root: string, files: Iterable<string>): string[][];
  writeEntries(root: string, folder: string, groups: readonly (readonly string[])[]): string[];
}

const { testFilesBelow, groupFiles, writeEntries } = (await import(
  pathToFileURL(resolve(import.meta.dirname, '../groups.mjs')).href
)) as Groups;

const openRoot = (t: TestContext, files: Readonly<Record<string, string>>): string => {
  const root = mkdtempSync(join(tmpdir(), 'acp-groups-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
};

const runEntries = (root: string): string => {
  const entries = writeEntries(root, join(root, 'entries'), groupFiles(root, testFilesBelow(root, 'test')));
  // Without the variable that tells a process that it is one file of a test run.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const args = ['--test', '--test-reporter=spec', ...entries];
  return spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' }).stdout;
};

test('each test file is in one group, and one that asks for a process of its own is alone there', (t) => {
  const root = openRoot(t, {
    'test/a/one.test.ts': '',
    'test/a/support.ts': '',
    'test/a/two.test.ts': '// A process of its own: it says why.\n',
    'test/b/three.test.ts': '// A process of its own:\n',
    'test/e2e/four.test.ts': '',
    'test/five.test.ts': 'x'.repeat(200_000),
    'test/features/audit/six.test.ts': '',
    'test/features/tenants/seven.test.ts': '',
    'test/features/auditors/eight.test.ts': '',
  });
  const files = testFilesBelow(root, 'test');
  assert.deepEqual(groupFiles(root, files), [
    ['test/e2e/four.test.ts'],
    ['test/features/audit/six.test.ts', 'test/features/tenants/seven.test.ts'],
    ['test/a/one.test.ts', 'test/b/three.test.ts', 'test/features/auditors/eight.test.ts'],
    ['test/a/two.test.ts'],
    ['test/five.test.ts'],
  ]);
});

test('tests that wait for programs are begun among those that compute, and none of them at the end', (t) => {
  const named = (folder: string, count: number, bytes: number) =>
    Array.from({ length: count }, (_, at) => [`test/${folder}/${at}.test.ts`, 'x'.repeat(bytes)] as const);
  const files = Object.fromEntries([...named('features', 10, 100_000), ...named('fleet', 4, 30_000)]);
  const root = openRoot(t, files);
  const groups = groupFiles(root, testFilesBelow(root, 'test'));
  assert.deepEqual(groups.flat().sort(), Object.keys(files).sort());
  assert.equal(
    groups.map(([file]) => (file?.startsWith('test/fleet/') === true ? 'waits' : 'computes')[0]).join(''),
    'wccwccwccwcccc',
  );
});

test('files that share a process are suites by their path, hooks and failures included', (t) => {
  const imports = "import { after, before, test } from 'node:test';\n";
  const root = openRoot(t, {
    'test/broken.test.ts': "throw new Error('It cannot be loaded.');\n",
    'test/slow.mjs': 'await new Promise((resolve) => setTimeout(resolve, 20));\n',
    'test/first.test.ts': `import './slow.mjs';\n${imports}
      before(() => { globalThis.open = true; });
      after(() => { globalThis.open = false; });
      test('is open', () => { if (!globalThis.open) throw new Error('It is closed.'); });`,
    'test/second.test.ts': `import './slow.mjs';\n${imports}
      test('is closed', () => { if (globalThis.open) throw new Error('It is open.'); });
      test('fails', () => { throw new Error('It fails.'); });`,
  });
  const told = runEntries(root).replaceAll(/ \(\d.*ms\)/g, '');
  assert.match(told, /^✖ test\/broken\.test\.ts\n/m);
  assert.match(told, /It cannot be loaded\./);
  assert.match(told, /^▶ test\/first\.test\.ts\n {2}✔ is open\n✔ test\/first\.test\.ts\n/m);
  assert.match(told, /^▶ test\/second\.test\.ts\n {2}✔ is closed\n {2}✖ fails\n✖ test\/second\.test\.ts\n/m);
  assert.match(told, /^ℹ tests 3\nℹ suites 3\nℹ pass 2\nℹ fail 1\n/m);
});

test('units of work are repeated in the processes of the features that it matters for, and in no other', (t) => {
  const told = (name: string) => `import { test } from 'node:test';
    test('${name}: ' + (process.env.ACP_REPEAT_UNITS ?? 'once'), () => undefined);`;
  const root = openRoot(t, {
    'test/features/approvals/first.test.ts': told('first'),
    'test/features/runs/second.test.ts': told('second'),
  });
  const output = runEntries(root);
  assert.match(output, /✔ first: 1 /);
  assert.match(output, /✔ second: once /);
});
