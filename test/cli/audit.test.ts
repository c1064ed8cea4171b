import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFolder } from './support.ts';

test('audit list, show, verify and export; the file is checked in a folder that has no store', async (t) => {
  const folder = createFolder(t);
  const elsewhere = createFolder(t);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const list = JSON.parse((await folder.acp(['audit', 'list', '--json'])).stdout) as { entity: string }[];
  assert.deepEqual(
    list.map(({ entity }) => entity),
    ['agent:hello'],
  );
  assert.match((await folder.acp(['audit', 'show', 'agent:hello'])).stdout, /agent\.create/);
  assert.match((await folder.acp(['audit', 'verify'])).stdout, /Valid: 1 entries checked/);

  const written = await folder.acp(['audit', 'export', '-o', 'audit.jsonl']);
  assert.equal(written.code, 0, written.stderr);
  const [fingerprint = ''] = /SHA256:[\w+/]{43}/.exec(written.stderr) ?? [];
  const copy = join(elsewhere.path, 'audit.jsonl');
  copyFileSync(join(folder.path, 'audit.jsonl'), copy);
  const found = await elsewhere.acp(['audit', 'verify', 'audit.jsonl', '--public-key', fingerprint]);
  assert.equal(found.code, 0, found.stderr);
  assert.match(found.stdout, /Valid/);
  const unpinned = await elsewhere.acp(['audit', 'verify', 'audit.jsonl']);
  assert.match(unpinned.stderr, /--public-key/);
  const other = await elsewhere.acp(['audit', 'verify', 'audit.jsonl', '--public-key', `SHA256:${'A'.repeat(43)}`]);
  assert.deepEqual([other.code, /OtherKey/.test(other.stdout)], [1, true]);

  await folder.acp(['agents', 'delete', 'hello']);
  await folder.acp(['audit', 'export', '-o', 'later.jsonl']);
  const continued = await folder.acp(['audit', 'verify', 'later.jsonl', '--continues', 'audit.jsonl', '--json']);
  assert.equal(JSON.parse(continued.stdout).status, 'Valid');
  const shorter = await folder.acp(['audit', 'verify', 'audit.jsonl', '--continues', 'later.jsonl', '--json']);
  assert.deepEqual([shorter.code, JSON.parse(shorter.stdout).status], [1, 'Rewritten']);

  writeFileSync(copy, readFileSync(copy, 'utf8').replace('agent:hello', 'agent:other'));
  const altered = await elsewhere.acp(['audit', 'verify', 'audit.jsonl']);
  assert.deepEqual([altered.code, /Altered: The file was changed/.test(altered.stdout)], [1, true]);
  assert.equal((await elsewhere.acp(['audit', 'verify', 'hello.yaml'])).code, 2);
  assert.equal((await elsewhere.acp(['audit', 'verify', 'nowhere.jsonl'])).code, 2);
});
