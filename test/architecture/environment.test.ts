import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');
// Both ways to the variables: the global's member, and the member of the built-in module.
const reads =
  /\bprocess\s*(\?\.|\.)\s*env\b|\bprocess\[['"]env|import\s*\{[^}]*\benv\b[^}]*\}\s*from\s*'(node:)?process'/;

test('environment variables are read in one file', () => {
  const files = globSync('{src,migrations}/**/*.{ts,tsx}', { cwd: root });
  const readers = files.filter((file) => {
    const code = readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\/?\*|\/\/).*$/gm, '');
    return reads.test(code);
  });
  assert.deepEqual(readers, [join('src', 'core', 'environment.ts')]);
});
