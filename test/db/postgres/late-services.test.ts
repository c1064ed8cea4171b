import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { contentPlace } from '../../../src/db/content/store.ts';
import type { OpenOptions } from '../../../src/db/open-storage.ts';
import { partitionAt, partitionedTables } from '../../../src/db/postgres/partition-ranges.ts';
import { attachmentStore } from '../../../src/features/attachments/attachments.store.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { eventually, inTime } from '../../support/eventually.ts';
import { withPostgres } from '../../support/postgres-server.ts';
import { openOnServer, skip } from './opened.ts';

/*
 * Services that are not fenced: what they write when another process has their lease long since. The process stands still
 * in the middle of a write, as far as the database can tell.
 */

/** A store, and the same as a process has it whose next write with this text in it is on its way until `letGo`. */
const openLate = async (t: TestContext, text: string, options: Partial<OpenOptions> = {}) => {
  const opened = await openOnServer(t);
  const proxy = await startCuttingProxy(opened.url);
  t.after(() => proxy.close());
  const postgres = {
    connectionString: proxy.url,
    ...{ directConnectionString: null, schema: 'service', maxConnections: 8 },
  };
  const late = await opened.again({ ...options, postgres });
  proxy.holds = (piece) => piece.includes(text);
  return {
    ...opened,
    late,
    isHolding: () => eventually('it is about to write', () => proxy.isHolding),
    letGo(): void {
      proxy.holds = () => false;
      proxy.letGo();
    },
  };
};

const execute = (url: string, sql: string) => withPostgres(url, (client) => client.query(sql));

test('JOB-41 partitions that a process was about to make, and another one has made since, stay as they are, with their rows', {
  skip,
}, async (t) => {
  const told: string[] = [];
  const line = (_fields: unknown, message: string) => void told.push(message);
  const { storage, late, url, isHolding, letGo } = await openLate(t, 'attach partition', {
    log: { error: line, warn: line, info: line, debug: line } as unknown as OpenOptions['log'],
  });
  const [ofLate, ofOther] = [late.storage.dialect.partitions, storage.dialect.partitions];
  assert.ok(ofLate !== undefined && ofOther !== undefined);
  const entry = partitionedTables.find(({ table }) => table === 'run_inputs') ?? assert.fail('it is partitioned');
  const now = Date.now();
  const { name } = partitionAt(entry, now + entry.widthMs);
  await execute(url, `drop table service.${name}`);
  const preparing = ofLate.prepare(now);
  await isHolding();
  await ofOther.prepare(now);
  const hex = (now + entry.widthMs).toString(16).padStart(12, '0');
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
  await storage.db.insertInto('run_inputs').values({ run_id: id, messages: '[]', context: null }).execute();
  letGo();
  await inTime('it has tried to', preparing);
  const { rows } = await execute(url, `select run_id from service.${name}`);
  assert.deepEqual(rows, [{ run_id: id }]);
  assert.deepEqual([ofLate.missing(), ofOther.missing()], [[], []]);
  assert.deepEqual(told, [], 'nothing was amiss');
});

const hourMs = 3_600_000;

test('JOB-41 a content that a process was about to remove as abandoned stays, when it was kept since', {
  skip,
}, async (t) => {
  // In the text of the release alone.
  const { contents, late, isHolding, letGo } = await openLate(t, 'set "place" = $1, "touched_at" = $2', {
    now: () => Date.now() + 2 * hourMs,
  });
  const bytes = randomBytes(300_000);
  const digest = createHash('sha256').update(bytes).digest('hex');
  const place = contentPlace('acme', digest);
  const draft = await contents.draft();
  await draft.write(bytes);
  const removing = late.contents.removeLoose(new AbortController().signal);
  await isHolding();
  await contents.keep(draft, place, (stores) =>
    stores(attachmentStore).insert({
      ...{ id: 'a', tenant_id: 'acme', session_id: null, run_id: null, file_name: 'a.txt', media_type: 'text/plain' },
      ...{ byte_size: bytes.length, sha256: digest, created_by: null, user_id: null, owner_id: null, created_at: 1 },
    }),
  );
  await draft.discard();
  letGo();
  assert.equal(await removing, 0);
  assert.deepEqual(Buffer.from((await contents.read(place)) ?? []), bytes);
});
