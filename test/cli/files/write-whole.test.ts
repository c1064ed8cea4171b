import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeWhole } from '../../../src/cli/files/write-whole.ts';
import { AcpError } from '../../../src/contract/errors.ts';

test('a download that breaks off leaves the file of that name as it was, and nothing else', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-write-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'run.acp');
  writeFileSync(file, 'mine');
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half');
    throw new AcpError('cannot-connect', 'It broke off.');
  };
  await assert.rejects(writeWhole('run.acp', folder, broken()), { code: 'cannot-connect' });
  assert.deepEqual([readdirSync(folder), readFileSync(file, 'utf8')], [['run.acp'], 'mine']);
  const whole = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from('whole');
  };
  await assert.rejects(writeWhole('run.acp', folder, whole(), { replaces: false }), { code: 'validation-failed' });
  assert.deepEqual([readdirSync(folder), readFileSync(file, 'utf8')], [['run.acp'], 'mine']);
  await writeWhole('run.acp', folder, whole());
  assert.equal(readFileSync(file, 'utf8'), 'whole');
});
