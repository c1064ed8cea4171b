import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');

const ways: Readonly<Record<string, RegExp>> = {
  query: /\b(selectFrom|insertInto|updateTable|deleteFrom|CompiledQuery)\b|\bsql`|from 'kysely'/,
  statement: /\b(defineStore|insertStatement|updateStatement)\b|\bwrite\(\[?\s*\{\s*sql\b/,
  'handle on the open database': /[\w)]\.db(?!\.audit-key)[.,;)]|\bconst \{[^{}\n]*\bdb\b[^{}\n]*\}/,
  driver: /(from |import\(|require\()['"`](better-sqlite3|node:sqlite|pg)['"`]|\bnew Database\(|['"`]sqlite3\b/,
  'name of a table': /\bservice_(?!tier\b)[a-z]{2,}/,
  // What a server says of itself is nothing of the service's.
  'text of a query':
    /\b(insert\s+into|delete\s+from|alter\s+table|(create|drop)\s+trigger|update\s+\w+\s+set|select\s[\w\s.,*()]+?\sfrom(?!\s+pg_))\s/i,
};
const reaches = (code: string): boolean => Object.values(ways).some((way) => way.test(code));

const codeOf = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\/?\*|\/\/).*$/gm, '');

const files = globSync('test/**/*.{ts,tsx}', { cwd: root })
  .map((file) => file.replaceAll('\\', '/'))
  // What the store itself is, is proved on its tables.
  .filter((file) => !file.startsWith('test/db/') && !file.startsWith('test/architecture/'));

/** Reach behind the service, each for the reason at its head. */
const exceptions: readonly string[] = [
  'test/features/audit/tampering.ts',
  'test/features/security/tampering.ts',
  'test/support/postgres-server.ts',
  'test/support/postgres-store.ts',
  'test/support/store.ts',
];

test('tests ask the service, and no more files than five reach behind it', () => {
  assert.ok(exceptions.length <= 5);
  const reaching = files.filter((file) => reaches(codeOf(file))).sort();
  assert.deepEqual(reaching, exceptions, 'CONTRIBUTING.md says what a test can do instead');
});

test('a file that reaches behind the service would be seen', () => {
  const lines: Readonly<Record<string, readonly string[]>> = {
    query: ["db.selectFrom('runs')", 'const { updateTable } = db;', 'sql`vacuum`'],
    statement: ["updateStatement(db, 'jobs', [], [])", "storage.write([{ sql: 'vacuum', parameters: [] }])"],
    'handle on the open database': [
      'query(storage.db)',
      'const { db } = app.store.open();',
      'app.store.open().db.schema',
    ],
    driver: [
      "import Database from 'better-sqlite3';",
      "import pg from 'pg';",
      "await import('node:sqlite')",
      "spawn('sqlite3', [file])",
    ],
    'name of a table': ['from service_runs'],
    'text of a query': ['SELECT id, status FROM runs', 'update runs set status = 1', 'INSERT  INTO runs'],
  };
  for (const [way, samples] of Object.entries(lines)) for (const line of samples) assert.match(line, ways[way] ?? /^$/);
  const others = [
    'app.client.runs.list({})',
    "app.store.refuse('jobs')",
    "join(folder, 'data/acp.db')",
    'const select = async (from: string) => from;',
    'storage.write(sessions.open(row))',
    "'select count(*) from pg_stat_activity where pid = 1'",
  ];
  for (const line of others) assert.equal(reaches(line), false, line);
});
