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

/** Reach behind the service for good, each for the reason at its head. */
const forGood: readonly string[] = [
  'test/features/audit/tampering.ts',
  'test/features/security/tampering.ts',
  'test/support/store.ts',
];

/** Are still to be asked through doors; the list only becomes shorter. */
const leftover: readonly string[] = [
  'test/e2e/faults/attachments.test.ts',
  'test/e2e/faults/continuations.test.ts',
  'test/e2e/faults/disk-full.test.ts',
  'test/e2e/faults/drain.test.ts',
  'test/e2e/faults/effects.test.ts',
  'test/e2e/faults/kill.test.ts',
  'test/e2e/faults/providers.test.ts',
  'test/e2e/faults/quota-storm.ts',
  'test/e2e/faults/quotas-store.test.ts',
  'test/e2e/faults/quotas-strict.test.ts',
  'test/e2e/faults/quotas.test.ts',
  'test/e2e/faults/refused-writes.test.ts',
  'test/e2e/faults/rolling-restart.test.ts',
  'test/e2e/faults/service-leases.test.ts',
  'test/e2e/support.ts',
];

test('tests ask the service, and no more files than five reach behind it', () => {
  assert.ok(forGood.length <= 5);
  const found = files.filter((file) => reaches.test(codeOf(file))).sort();
  const listed = [...forGood, ...leftover];
  assert.deepEqual(
    found.filter((file) => !listed.includes(file)),
    [],
    'these reach behind the service: CONTRIBUTING.md says what they can do instead',
  );
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
