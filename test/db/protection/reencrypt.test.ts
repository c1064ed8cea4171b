import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { contentFiles, contentFolder } from '../../../src/db/content/files.ts';
import { type ContentPlace, contentPlace } from '../../../src/db/content/store.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { reencryptStore } from '../../../src/db/protection/reencrypt.ts';
import type { ReencryptedTable } from '../../../src/db/protection/reencrypt-tally.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
const keys = { a: key(1), b: key(2) };
// Begins like an encrypted file.
const tricky = 'acp-sealed-file\x01 and plain text behind it';
const cipher = createContentCipher('a', keys);

const counts = ({ rows, plain, former, rewritten, unreadable, orphaned }: ReencryptedTable) => [
  rows,
  plain,
  former,
  rewritten,
  unreadable,
  orphaned,
];

test('SEC-50 SEC-52 rows of runs are encrypted for the tenants of their runs, however long they are', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { storage, close } = await openTestStore(t, file);
  const content = (run: string, sequence: number) =>
    JSON.stringify(sequence === 3 ? 'x'.repeat(5_000_000) : `${run} step ${sequence}`);
  for (const tenant of ['acme', 'other'])
    for (const run of [`${tenant}-1`, `${tenant}-2`]) {
      const row = { id: run, tenant_id: tenant, agent_name: 'a', kind: 'Agent', status: 'Completed' };
      await storage.db
        .insertInto('runs')
        .values({ ...row, created_at: 1, is_streaming: 0, depth: 0, event_count: 0 } as never)
        .execute();
      for (const sequence of [1, 2, 3, 4])
        await storage.db
          .insertInto('run_steps')
          .values({ run_id: run, sequence, content: content(run, sequence) })
          .execute();
    }
  const trace = { id: 't', tenant_id: 'acme', trace_id: 't', started_at: 1, ended_at: 2 };
  await storage.db
    .insertInto('run_traces')
    .values([
      { ...trace, run_id: 'acme-1', spans: '[]', span_count: 0 },
      { ...trace, run_id: 'acme-2', spans: '[{"name":"one"},{"name":"two"}]', span_count: 2 },
    ])
    .execute();
  // What a run that is gone would leave.
  await storage.db.insertInto('run_steps').values({ run_id: 'gone', sequence: 1, content: '"lost"' }).execute();
  await close();

  const options = storeOptions(file, { cipher });
  const report = await reencryptStore(options);
  const table = (name: string) => counts(report.tables.find(({ table: found }) => found === name) ?? assert.fail(name));
  assert.deepEqual(table('run_steps'), [17, 16, 0, 16, 0, 1]);
  assert.deepEqual(table('run_traces'), [2, 2, 0, 2, 0, 0]);
  assert.equal(report.left, 1);
  const opened = await openStorage(options);
  t.after(() => opened.close());
  const { db, rows } = opened.storage;
  for (const step of await db.selectFrom('run_steps').selectAll().where('run_id', '!=', 'gone').execute()) {
    assert.match(step.content, /^acp:sealed:1:a:/);
    const tenant = step.run_id.split('-', 1)[0] ?? '';
    assert.equal(rows.open('run_steps', tenant, step).content, content(step.run_id, step.sequence));
  }
  const { rows: spans } = await opened.storage.db
    .selectFrom('run_traces')
    .select((eb) => eb.fn.sum<number>('span_count').as('rows'))
    .executeTakeFirstOrThrow();
  assert.equal(spans, 2);
});

test('SEC-52 SEC-53 files of attachments: plain, under a former key, and damaged ones, which stay', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { storage, close } = await openTestStore(t, file);
  const files = contentFiles(contentFolder(file));
  const names = ['plain', 'damaged', 'missing', tricky];
  const places = new Map<string, ContentPlace>();
  for (const [index, text] of names.entries()) {
    const sha256 = createHash('sha256').update(text).digest('hex');
    places.set(text, contentPlace('acme', sha256));
    const row = { id: `${index}`, tenant_id: 'acme', file_name: 'f', media_type: 'text/plain', byte_size: 1, sha256 };
    await storage.db
      .insertInto('attachments')
      .values({ ...row, created_at: 1 } as never)
      .execute();
    const draft = await files.draft();
    await draft.write(Buffer.from(text));
    if (text !== 'missing') await draft.keep(contentPlace('acme', sha256));
    await draft.discard();
  }
  const pathOf = (text: string): string => join(contentFolder(file), places.get(text) ?? '');
  writeFileSync(pathOf('damaged'), 'Damaged');
  await close();

  const attachments = ({ tables }: { tables: readonly ReencryptedTable[] }) => counts(tables.at(-1) ?? assert.fail());
  const first = await reencryptStore(storeOptions(file, { cipher }));
  assert.deepEqual(attachments(first), [3, 2, 0, 2, 1, 0]);
  assert.equal(readFileSync(pathOf('damaged'), 'utf8'), 'Damaged');
  for (const text of ['plain', tricky]) assert.ok(!readFileSync(pathOf(text)).includes('plain'), text);
  const second = await reencryptStore(storeOptions(file, { cipher: createContentCipher('b', keys) }));
  assert.deepEqual(attachments(second), [3, 0, 2, 2, 1, 0]);
  const lost = await reencryptStore(storeOptions(file, { cipher }));
  assert.deepEqual([attachments(lost), lost.left], [[3, 0, 2, 2, 1, 0], 1]);
  const without = { ...storeOptions(file, { cipher: createContentCipher('b', { b: keys.b }) }), dryRun: true };
  const none = await reencryptStore(without);
  assert.deepEqual(attachments(none), [3, 1, 0, 0, 2, 0], 'to count, no plain file is read');
  assert.deepEqual(none.formerKeys, [{ keyId: 'a', rows: 2, configured: false }]);
});

test('SEC-52 there is nothing to encrypt with without a key, and counting tells what is under which', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  await assert.rejects(reencryptStore(storeOptions(file, { cipher })), /There is no store at/);
  const { storage, close } = await openTestStore(t, file, { cipher });
  const message = { conversation_id: 'c', message: '"hello"' };
  const session = { tenant_id: 'acme', id: 's', agent_name: 'a', conversation_id: 'c', version: 1, message_count: 2 };
  await storage.db
    .insertInto('sessions')
    .values({ ...session, created_at: 1, updated_at: 1 } as never)
    .execute();
  await storage.db
    .insertInto('session_messages')
    .values([{ ...message, sequence: 0 }, storage.rows.seal('session_messages', 'acme', { ...message, sequence: 1 })])
    .execute();
  const off = storeOptions(file, { cipher: createContentCipher(null, keys) });
  await assert.rejects(reencryptStore(off), { code: 'validation-failed' });
  // While a service has the store, too.
  const counted = await reencryptStore({ ...off, dryRun: true });
  assert.equal(counted.left, 1);
  assert.deepEqual(counted.formerKeys, [
    { keyId: 'a', rows: 1, configured: true },
    { keyId: 'b', rows: 0, configured: true },
  ]);
  await assert.rejects(reencryptStore(storeOptions(file, { cipher })), { code: 'store-unavailable' });
  await close();
  assert.equal((await reencryptStore(storeOptions(file, { cipher }))).left, 0);
  await assert.rejects(reencryptStore(storeOptions(file, { provider: 'Memory', cipher })), {
    code: 'feature-not-available',
  });
});
