import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFolder } from './support.ts';

const source = [
  '---\r\n# kept as it is\r\ndescription: "Works: on files"\r\nname: pdf\r\nlicense: MIT\r\n',
  'allowed-tools: [Read, Bash]\r\nversion: 1.0\r\nmetadata: { author: Zoë, level: 2 }\r\n---\r\n\r\n# Hallo Zürich 👋\r\n',
].join('');

test('skills apply is idempotent, and export gives the folder back byte for byte', async (t) => {
  const folder = createFolder(t);
  const files: Record<string, string> = {
    'pdf/SKILL.md': source,
    'pdf/references/deep/form.md': '\uFEFFGrüezi\r\n',
    'pdf/data.json': '{}',
  };
  for (const [path, text] of Object.entries(files)) folder.write(path, text);
  await folder.serve();
  const apply = async () => JSON.parse((await folder.acp(['skills', 'apply', 'pdf', '--json'])).stdout)[0];
  assert.deepEqual(await apply(), { name: 'pdf', action: 'created', version: 1, notes: [] });
  assert.equal((await apply()).action, 'unchanged');
  const { code, stderr } = await folder.acp(['skills', 'export', 'pdf', '-o', 'out']);
  assert.equal(code, 0, stderr);
  for (const [path, text] of Object.entries(files))
    assert.equal(readFileSync(join(folder.path, path.replace(/^pdf/, 'out')), 'utf8'), text, path);
  assert.equal((await folder.acp(['skills', 'export', 'pdf', '-o', 'out'])).code, 2);
});
