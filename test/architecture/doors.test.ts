import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');

// A query, a handle on the open database, the driver, or the name of a table.
const reaches =
  /\b(selectFrom|insertInto|updateTable|deleteFrom)\(|storage\.db\b|\.db\.schema\b|from 'better-sqlite3'|\bapp\.(rows|change)\(|\.(rows|change)<|\bservice_(?!tier\b)[a-z]{2,}/;

const codeOf = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\/?\*|\/\/).*$/gm, '');

const files = globSync('test/**/*.{ts,tsx}', { cwd: root })
  .map((file) => file.replaceAll('\\', '/'))
  // What the store itself is, is proved on its tables.
  .filter((file) => !file.startsWith('test/db/') && !file.startsWith('test/architecture/'));

/** Reach behind the service, each for the reason at its head. */
const exceptions: readonly string[] = [
  'test/features/audit/tampering.ts',
  'test/features/security/tampering.ts',
  'test/support/store.ts',
];

test('tests ask the service, and no more files than five reach behind it', () => {
  assert.ok(exceptions.length <= 5);
  const reaching = files.filter((file) => reaches.test(codeOf(file))).sort();
  assert.deepEqual(reaching, exceptions, 'CONTRIBUTING.md says what a test can do instead');
});

test('a file that reaches behind the service would be seen', () => {
  const lines = [
    "db.selectFrom('runs')",
    "app.rows('select 1')",
    "import Database from 'better-sqlite3';",
    'from service_runs',
  ];
  for (const line of lines) assert.match(line, reaches);
  for (const line of ['app.client.runs.list({})', "app.store.refuse('jobs')"]) assert.doesNotMatch(line, reaches);
});
