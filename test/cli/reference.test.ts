import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { buildProgram } from '../../src/cli/program.ts';
import { renderReference } from './reference.ts';

test('docs/reference/cli.md is what the program says', () => {
  const file = join(import.meta.dirname, '../../docs/reference/cli.md');
  const text = renderReference(buildProgram());
  if (process.env['ACP_UPDATE_GOLDEN'] === '1') writeFileSync(file, text);
  assert.equal(readFileSync(file, 'utf8'), text, 'run with ACP_UPDATE_GOLDEN=1 to write it anew');
});
