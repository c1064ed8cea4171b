import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import type { SqlDialect } from '../../../src/db/dialect.ts';
import { createSqliteDialect } from '../../../src/db/sqlite/dialect.ts';
import { startWatchdog } from '../../../src/db/sqlite/watchdog.ts';
import { temporaryFolder } from '../../support/opened-store.ts';

const bound = 1_048_576;

const openNotes = (t: TestContext, file: string): SqlDialect => {
  const dialect = createSqliteDialect({ path: file, tablePrefix: '', synchronous: 'Normal', busyTimeoutMs: 1000 });
  t.after(() => dialect.close());
  return dialect;
};

const exec = (dialect: SqlDialect, sql: string) => dialect.commitUnits([[{ sql, parameters: [] }]]);

/** Appends about this much to the log. */
const append = async (dialect: SqlDialect, bytes: number): Promise<void> => {
  for (let written = 0; written < bytes; written += 65_536)
    await dialect.commitUnits([[{ sql: 'insert into notes values (?)', parameters: ['x'.repeat(65_536)] }]]);
};

const warnings = () => {
  const messages: string[] = [];
  return { messages, log: { warn: (_fields: Record<string, unknown>, message: string) => messages.push(message) } };
};

test('a log over the bound is moved into the file, and reused instead of growing', async (t) => {
  const dialect = openNotes(t, join(temporaryFolder(t), 'acp.db'));
  const { log, messages } = warnings();
  const watchdog = startWatchdog(dialect, { log, intervalMs: 3_600_000, boundBytes: bound });
  t.after(() => watchdog.stop());
  await exec(dialect, 'create table notes (text)');
  for (let round = 0; round < 20; round += 1) {
    await append(dialect, bound);
    await watchdog.look();
    assert.ok((await dialect.walBacklogBytes()) < bound);
    assert.ok((await dialect.size()).walBytes < 3 * bound, `round ${round}`);
  }
  assert.deepEqual(messages, []);
});

test('an idle store gives the space of its log back', async (t) => {
  const dialect = openNotes(t, join(temporaryFolder(t), 'acp.db'));
  const watchdog = startWatchdog(dialect, { ...warnings(), intervalMs: 3_600_000, boundBytes: bound });
  t.after(() => watchdog.stop());
  await exec(dialect, 'create table notes (text)');
  await append(dialect, bound / 4);
  await watchdog.look();
  assert.ok((await dialect.size()).walBytes > 0);
  await watchdog.look();
  assert.equal((await dialect.size()).walBytes, 0);
});

test('a reader that never ends is not waited for, and is told once', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const dialect = openNotes(t, file);
  const { log, messages } = warnings();
  const watchdog = startWatchdog(dialect, { log, intervalMs: 3_600_000, boundBytes: 65_536 });
  t.after(() => watchdog.stop());
  await exec(dialect, 'create table notes (text)');
  const reader = new Database(file, { readonly: true });
  reader.exec('begin; select * from notes');
  for (let round = 0; round < 3; round += 1) {
    await append(dialect, 2 * bound);
    await watchdog.look();
  }
  assert.equal(messages.length, 1);
  reader.close();
  await watchdog.look();
  await watchdog.look();
  assert.equal((await dialect.size()).walBytes, 0);
});

test('the timer looks by itself and keeps no process alive', async (t) => {
  const dialect = openNotes(t, join(temporaryFolder(t), 'acp.db'));
  const looked = new Promise<void>((resolve) => {
    const watched: SqlDialect = {
      ...dialect,
      walBacklogBytes: () => {
        resolve();
        return dialect.walBacklogBytes();
      },
    };
    const watchdog = startWatchdog(watched, { ...warnings(), intervalMs: 1 });
    t.after(() => watchdog.stop());
  });
  const alive = setTimeout(() => undefined, 60_000);
  await looked;
  clearTimeout(alive);
});

test('a failing look is told and the next one is made', async (t) => {
  const dialect = openNotes(t, join(temporaryFolder(t), 'acp.db'));
  const { log, messages } = warnings();
  let failing = true;
  const watched: SqlDialect = {
    ...dialect,
    walBacklogBytes: () => (failing ? Promise.reject(new Error('disk')) : dialect.walBacklogBytes()),
  };
  const watchdog = startWatchdog(watched, { log, intervalMs: 3_600_000 });
  t.after(() => watchdog.stop());
  await watchdog.look();
  failing = false;
  await watchdog.look();
  assert.equal(messages.length, 1);
});
