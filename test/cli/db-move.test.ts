import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MoveReport } from '../../src/db/move/move-store.ts';
import { createFolder, helloAgent } from './support.ts';

const inStore = (path: string): string[] => ['--set', `Service:Persistence:Sqlite:ConnectionString=${path}`];

test('a store moves to another file, and is served from there', async (t) => {
  const folder = createFolder(t);
  folder.write('hello.yaml', helloAgent);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  await folder.acp(['run', 'hello', 'Hi']);
  folder.write('note.txt', 'what was attached');
  const uploaded = await folder.acp(['attachments', 'upload', 'note.txt', '--json']);
  const { id } = JSON.parse(uploaded.stdout) as { id: string };
  const none = await folder.acp(['db', 'move']);
  assert.deepEqual([none.code, /--to.*--from/.test(none.stderr)], [2, true]);
  const preview = await folder.acp(['db', 'move', '--to', 'moved/acp.db', '--dry-run']);
  assert.deepEqual([preview.code, existsSync(join(folder.path, 'moved'))], [0, false], preview.stderr);
  assert.match(
    preview.stdout,
    /rows, 1 audit trail and 1 file of attachments of .*data\/acp\.db would be moved to .*moved\/acp\.db/,
  );
  const moved = await folder.acp(['db', 'move', '--to', 'moved/acp.db', '--json']);
  assert.equal(moved.code, 0, moved.stderr);
  const report = JSON.parse(moved.stdout) as MoveReport;
  assert.ok(report.rows > 5 && report.findings.length === 0 && !report.resumed);
  assert.deepEqual(
    report.auditTrails.map(({ tenantId, status }) => [tenantId, status]),
    [['default', 'Valid']],
  );
  const there = inStore(join(folder.path, 'moved/acp.db'));
  for (const command of [
    ['runs', 'list', '--json'],
    ['agents', 'get', 'hello', '--json'],
    ['audit', 'verify', '--json'],
    ['attachments', 'get', id],
  ]) {
    const [before, after] = [await folder.acp(command), await folder.acp([...command, ...there])];
    assert.deepEqual([after.code, after.stdout], [0, before.stdout], command.join(' '));
  }
  const again = await folder.acp(['db', 'move', '--to', 'moved/acp.db']);
  assert.deepEqual([again.code, /is not empty/.test(again.stderr)], [2, true]);
});

test('a store that is served is moved once its service answers reads only, which lasts until that is started again', async (t) => {
  const folder = createFolder(t);
  folder.write('hello.yaml', helloAgent);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const { url, running } = await folder.serve();
  const refused = await folder.acp(['db', 'move', '--to', 'moved.db']);
  assert.deepEqual([refused.code, /is owned by process/.test(refused.stderr)], [8, true]);
  assert.equal((await folder.acp(['run', 'hello', 'Hi', '--url', url])).code, 0);
  const preview = await folder.acp(['db', 'move', '--to', 'moved.db', '--dry-run']);
  assert.equal(preview.code, 0, preview.stderr);
  assert.equal((await folder.acp(['run', 'hello', 'Hi', '--url', url])).code, 0, 'a preview holds nobody');
  const moved = await folder.acp(['db', 'move', '--to', 'moved.db', '--hold']);
  assert.equal(moved.code, 0, moved.stderr);
  const read = await folder.acp(['runs', 'list', '--json', '--url', url]);
  assert.equal(JSON.parse(read.stdout).length, 2);
  for (const command of [
    ['run', 'hello', 'Hi'],
    ['keys', 'create', 'k', '--scope', 'RunsRead'],
  ]) {
    const write = await folder.acp([...command, '--url', url]);
    assert.deepEqual([write.code, write.stdout], [8, ''], write.stderr);
  }
  running.child.kill('SIGTERM');
  assert.equal((await running.done).code, 0);
  const there = inStore(join(folder.path, 'moved.db'));
  assert.equal((await folder.acp(['runs', 'list', '--json', ...there])).stdout, read.stdout);
  assert.equal((await folder.acp(['run', 'hello', 'Hi'])).code, 0, 'the source is as it was');
});
