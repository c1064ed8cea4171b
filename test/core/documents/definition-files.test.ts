import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { definitionFilesBelow } from '../../../src/core/documents/definition-files.ts';

const folderOf = (t: TestContext): string => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-definitions-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

test('AGENT-1 a pipe below a folder of definitions is reported and never opened, and the other files are listed', async (t) => {
  const folder = folderOf(t);
  mkdirSync(join(folder, 'sub'));
  for (const name of ['b.yaml', 'a.json', 'sub/c.yml', 'notes.txt', '.hidden.yaml'])
    writeFileSync(join(folder, name), '');
  execFileSync('mkfifo', [join(folder, 'pipe.yaml')]);
  symlinkSync(join(folder, 'pipe.yaml'), join(folder, 'sub', 'link.yaml'));
  symlinkSync(join(folder, 'b.yaml'), join(folder, 'sub', 'to-file.yaml'));
  const reported: string[] = [];
  const files = await definitionFilesBelow(folder, (path, error) => {
    reported.push(`${relative(folder, path)}: ${(error as { code?: string }).code}`);
  });
  assert.deepEqual(
    files.map((path) => relative(folder, path)),
    ['a.json', 'b.yaml', 'sub/c.yml', 'sub/to-file.yaml'],
  );
  assert.deepEqual(reported, ['pipe.yaml: special-file', 'sub/link.yaml: special-file']);
});
