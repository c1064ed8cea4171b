import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { migrations } from '../../migrations/index.ts';
import type { SqlDialect } from '../../src/db/dialect.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createSqliteDialect } from '../../src/db/sqlite/dialect.ts';
import { createStorage, type Storage } from '../../src/db/storage.ts';

/** A database that tests run on: `open` makes an empty one in a folder of its own. */
export interface TestDialect {
  readonly name: SqlDialect['name'];
  open(folder: string): SqlDialect;
}

/** Every database that the build supports; a new dialect is one entry more. */
const testDialects: readonly TestDialect[] = [
  {
    name: 'sqlite',
    open: (folder) =>
      createSqliteDialect({
        path: join(folder, 'acp.db'),
        tablePrefix: 'service_',
        synchronous: 'Normal',
        busyTimeoutMs: 1000,
      }),
  },
];

const defaultDialect = testDialects[0];

/** A migrated store in a temporary folder; both are gone when the test ends. */
export const openTestStorage = async (context: TestContext, dialect = defaultDialect): Promise<Storage> => {
  if (dialect === undefined) throw new Error('There is no database to test on.');
  const folder = await mkdtemp(join(tmpdir(), 'acp-test-'));
  const storage = createStorage(dialect.open(folder), true);
  context.after(async () => {
    await storage.close();
    await rm(folder, { recursive: true, force: true });
  });
  await migrate(storage, migrations, () => 0);
  return storage;
};

/** One test body for every database. */
export const forEachDialect = (
  name: string,
  body: (context: TestContext, dialect: TestDialect) => Promise<void>,
): void => {
  for (const dialect of testDialects) test(`${name} [${dialect.name}]`, (context) => body(context, dialect));
};
