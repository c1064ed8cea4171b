import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { createScanner } from '../../../src/db/sqlite/scanner.ts';

const scannerOf = (t: TestContext) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-idle-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'some.db');
  new BetterSqlite3(path).exec('create table kept (value integer)').close();
  return createScanner({ path, busyTimeoutMs: 1000 } as Parameters<typeof createScanner>[0]);
};

test('what is read while an idle thread ends is read by the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const scanner = scannerOf(t);
  for (let turn = 0; turn < 3; turn += 1) {
    assert.deepEqual(await scanner.read('select ? as turn', [turn]), [{ turn }]);
    // The thread has been idle for long, and is about to end.
    t.mock.timers.tick(10_000);
    for (let later = 0; later < turn; later += 1) await nextTurn();
    assert.deepEqual(await scanner.read('select ? as turn', [turn]), [{ turn }]);
  }
  await scanner.close();
});

test('what is read when the thread is closed for good is told so', async (t) => {
  const scanner = scannerOf(t);
  const reading = scanner.read('select 1', []);
  const refused = assert.rejects(reading, /The thread that reads the store has ended/);
  await scanner.close();
  await refused;
});
