import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeFolder } from '../../../src/core/files/make-folder.ts';

const sources = join(import.meta.dirname, '../../../src');
const source = (file: string): string => pathToFileURL(join(sources, file)).href;

test('folders are made with their mode, and the topmost one that is new is told', (t) => {
  const home = mkdtempSync(join(tmpdir(), 'acp-folder-'));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  assert.equal(makeFolder(join(home, 'a/b/c'), 0o700), join(home, 'a'));
  for (const name of ['a', 'a/b', 'a/b/c']) assert.equal(statSync(join(home, name)).mode & 0o777, 0o700);
  assert.equal(makeFolder(join(home, 'a/b/c'), 0o700), undefined);
  assert.equal(makeFolder(join(home, 'a/b/d')), join(home, 'a/b/d'));
  writeFileSync(join(home, 'file'), '');
  assert.throws(() => makeFolder(join(home, 'file')), { code: 'EEXIST' });
  assert.throws(() => makeFolder(join(home, 'file/below')), { code: 'ENOTDIR' });
});

/** In a process of its own, which ends even where the call does not. */
const codeIn = (script: string): string =>
  execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8', timeout: 10_000 });

test('an archive below /proc is an error, and not a sweep without end', { skip: process.platform !== 'linux' }, () => {
  const code = codeIn(`import { archiveFiles } from '${source('features/retention/archive-files.ts')}';
    const batch = { tenantId: 'default', target: 'Runs', rows: [{ id: 1 }] };
    await archiveFiles('/proc/none', Date.now).archive(batch, new AbortController().signal)
      .catch((error) => process.stdout.write(error.code));`);
  assert.equal(code, 'ENOENT');
});
