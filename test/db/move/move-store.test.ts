import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { migrations } from '../../../migrations/index.ts';
import { AcpError } from '../../../src/contract/errors.ts';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { type MoveOptions, type MoveReport, moveStore } from '../../../src/db/move/move-store.ts';
import { openCopy } from '../../../src/db/open-for-reading.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { tableNames } from '../../../src/db/tables.ts';
import { signingKeyMove, verifyTrails } from '../../../src/features/audit/index.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';
import { agentNames, insertAgent } from '../rows.ts';
import { fillEveryTable, longAmongShort } from './full-store.ts';
import { moveUntilKilled } from './killed-move.ts';

const refusal = (words: RegExp, code?: string) => (error: unknown) =>
  error instanceof AcpError && words.test(error.message) && (code === undefined || error.code === code);

/** A full store in a folder of its own, and where it may be moved to. */
const storeToMove = async (t: TestContext, rows: Parameters<typeof fillEveryTable>[1] = 12) => {
  const folder = temporaryFolder(t);
  const [from, to] = [storeOptions(join(folder, 'from.db')), storeOptions(join(folder, 'to.db'))];
  const source = await openTestStore(t, from.location);
  await fillEveryTable(source.storage, rows);
  await source.close();
  const move = (options: Partial<MoveOptions> = {}): Promise<MoveReport> =>
    moveStore({ from, to, verifyTrails, signingKey: signingKeyMove, ...options });
  return { folder, from, to, move, bytes: () => readFileSync(from.location) };
};

test('a move copies every table of the store, and both ends have the same hashes', async (t) => {
  const { folder, to, move, bytes } = await storeToMove(t);
  const before = bytes();
  const report = await move();
  assert.deepEqual(
    report.tables.map(({ table }) => table).sort(),
    tableNames.filter((name) => name !== 'schema_migrations').sort(),
  );
  assert.ok(report.tables.every(({ rows, hash }) => rows === 12 && /^[0-9a-f]{64}$/.test(hash ?? '')));
  assert.equal(bytes().compare(before), 0, 'the source is as it was');
  const again = await move({ from: to, to: storeOptions(join(folder, 'third.db')) });
  assert.deepEqual(again.tables, report.tables);
});

test('a move that is killed at any point is gone on with, and no service starts on its target before its end', async (t) => {
  const { from, to, move, bytes } = await storeToMove(t, longAmongShort);
  const before = bytes();
  for (const stretches of [1, 2, 35, 75]) {
    assert.equal(await moveUntilKilled(from, to, stretches), null, 'killed');
    for (const autoApplyMigrations of [true, false])
      await assert.rejects(
        openStorage({ ...to, autoApplyMigrations }),
        refusal(/is the target of a move from .*from\.db that is not finished/, 'store-unavailable'),
      );
  }
  const report = await move();
  assert.equal(report.resumed, true);
  assert.ok(report.tables.every(({ table, rows }) => rows === longAmongShort(table)));
  assert.equal(bytes().compare(before), 0);
  await (await openStorage(to)).close();
  // Whole, it is a store like any other, and no place for a second move.
  await assert.rejects(move(), refusal(/is not empty: it has rows in/, 'validation-failed'));
});

test('what was written to the source after a move was broken off is at the target in the end', async (t) => {
  const { from, to, move } = await storeToMove(t, 300);
  assert.equal(await moveUntilKilled(from, to, 40), null);
  const source = await openTestStore(t, from.location);
  const { storage } = source;
  await storage.write([insertAgent(storage.db, 'later')]);
  await storage.db.deleteFrom('agent_versions').where('version', '<', 100).execute();
  await storage.db.updateTable('agents').set({ current_version: 7 }).where('current_version', '=', 0).execute();
  await source.close();
  const report = await move();
  assert.equal(report.resumed, true);
  const target = await openTestStore(t, to.location);
  const names = await agentNames(target.storage.db);
  assert.ok(names.includes('later'));
  assert.equal(names.length, 301);
});

test('two ends that differ although nobody was to write to them are no finished move', async (t) => {
  const { from, to, move } = await storeToMove(t);
  let writing: Promise<void> | null = null;
  const write = async (): Promise<void> => {
    const other = openCopy(from);
    await other.write([insertAgent(other.db, 'from elsewhere')]);
    await other.close();
  };
  const tell: MoveOptions['tell'] = (work, table) => {
    if (work === 'copied' && table === 'agents') writing ??= write();
  };
  await assert.rejects(move({ tell }), refusal(/The rows of agents differ between both ends/));
  await writing;
  await assert.rejects(openStorage(to), refusal(/is the target of a move/));
  // Once nobody writes any more, the same call puts it right.
  await move();
  const target = await openTestStore(t, to.location);
  assert.ok((await agentNames(target.storage.db)).includes('from elsewhere'));
});

test('a preview reads everything and makes nothing', async (t) => {
  const { folder, move, bytes } = await storeToMove(t);
  const before = bytes();
  const report = await move({ dryRun: true });
  assert.equal(report.rows, 12 * (tableNames.length - 1));
  assert.equal(existsSync(join(folder, 'to.db')), false);
  assert.equal(bytes().compare(before), 0);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('to')),
    [],
  );
});

test('a move takes only a target that is empty or holds a part of the same store', async (t) => {
  const { folder, from, to, move } = await storeToMove(t, 300);
  await assert.rejects(move({ to: from }), refusal(/the same store/, 'validation-failed'));
  const other = storeOptions(join(folder, 'other.db'));
  await (await openStorage({ ...other, now: () => 1 })).close();
  assert.equal((await moveUntilKilled(other, to, 1_000_000)) !== null, true, 'an empty store moves as well');
  assert.equal(await moveUntilKilled(from, to, 5), null);
  await assert.rejects(move({ from: other }), refusal(/holds a part of another store, .*from\.db/));
  await move();
});

test('a source that waits for migrations, that is not there, or whose keys are not configured is not moved', async (t) => {
  const { folder, from, to, move } = await storeToMove(t);
  await assert.rejects(move({ from: storeOptions(join(folder, 'none.db')) }), refusal(/There is no store at/));
  const more = [...migrations, { name: '9999-more', checksum: 'x', up: async () => undefined }];
  await assert.rejects(
    move({ to: { ...to, migrations: more } }),
    refusal(/waits for migrations \(9999-more\)/, 'migrating'),
  );
  const cipher = createContentCipher('old', { old: Buffer.alloc(32, 7).toString('base64') });
  const source = await openTestStore(t, from.location, { cipher });
  await source.storage.db
    .insertInto('run_steps')
    .values(source.storage.rows.seal('run_steps', 't', { run_id: 'zzz', sequence: 1, content: 'secret' }))
    .execute();
  await source.close();
  await assert.rejects(move(), refusal(/under the keys old, which are not in Service:AtRest:Keys/));
  const report = await move({ from: { ...from, cipher }, to: { ...to, cipher } });
  assert.equal(report.tables.find(({ table }) => table === 'run_steps')?.rows, 13);
  assert.ok(readFileSync(to.location).includes('acp:sealed:1:old:'), 'sealed content moves as it is');
});

test('a source that is served is not moved, and no service starts on it while it is', async (t) => {
  const { from, move } = await storeToMove(t);
  const serving = await openStorage(from);
  await assert.rejects(move(), refusal(/is owned by process/));
  await serving.close();
  let isRefused = false;
  await move({
    async verifyTrails(storage) {
      await assert.rejects(openStorage(from), refusal(/is owned by process/));
      isRefused = true;
      return verifyTrails(storage);
    },
  });
  assert.ok(isRefused);
});

test('a fault in an audit trail of the source is told, and found again at the target', async (t) => {
  const { move } = await storeToMove(t);
  const { findings, auditTrails } = await move();
  assert.equal(auditTrails.length, 12);
  assert.equal(findings.filter((finding) => /has a fault \(Broken\)/.test(finding)).length, 12);
  // No file belongs to these rows.
  assert.equal(findings.filter((finding) => /^The file .* of attachment .* is missing\.$/s.test(finding)).length, 12);
});

test('a target whose disk is too small is refused before anything is made there', async (t) => {
  const { folder, from, move } = await storeToMove(t);
  const source = await openTestStore(t, from.location);
  await source.storage.db
    .updateTable('attachments')
    .set({ byte_size: 2 ** 50 })
    .where('byte_size', '=', 3)
    .execute();
  await source.close();
  await assert.rejects(move(), refusal(/to\.db has \d+ MiB free, and the store takes \d+ MiB/, 'store-unavailable'));
  assert.equal(existsSync(join(folder, 'to.db')), false);
});
