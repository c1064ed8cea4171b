import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { archiveFiles } from '../../../src/features/retention/archive-files.ts';

test('RET-17 no two tenants share an archive folder, on a disk that ignores case and final dots either', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-archive-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const tenants = ['blue', 'BLUE', 'Blue', 'blue.', 'blue..', '.', '..', 'a.b', 'a_b', 'x'.repeat(64), 'X'.repeat(64)];
  const sink = archiveFiles(folder, () => 0);
  for (const tenantId of tenants)
    await sink.archive({ tenantId, target: 'RunInputs', rows: [{ id: tenantId }] }, new AbortController().signal);
  const names = readdirSync(folder);
  const asAnyDisk = names.map((name) => name.toLowerCase().replace(/\.+$/, ''));
  assert.equal(new Set(asAnyDisk).size, tenants.length);
  // Plain ids keep the folder that they have had, and what is added to others stands in no tenant's id.
  assert.deepEqual(names.filter((name) => !name.includes('~')).sort(), [
    'tenant-a.b',
    'tenant-a_b',
    'tenant-blue',
    `tenant-${'x'.repeat(64)}`,
  ]);
  for (const name of names.filter((name) => name.includes('~')))
    assert.match(name, /^tenant-[A-Za-z0-9._-]+~[0-9a-f]{16}$/);
});
