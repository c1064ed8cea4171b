import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { partitionFacts } from '../../../src/db/postgres/partition-facts.ts';
import { partitionAt, partitionedTables } from '../../../src/db/postgres/partition-ranges.ts';
import { checkServer } from '../../../src/db/postgres/server-facts.ts';
import { executeAt, withPostgres } from '../../support/postgres-server.ts';
import { openOnServer, skip } from './opened.ts';

const weekMs = 7 * 86_400_000;
const inputs = partitionedTables.find(({ table }) => table === 'run_inputs');
assert.ok(inputs !== undefined);

const newId = (timeMs = Date.now()): string => {
  const hex = timeMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`;
};

test('a missing partition, rows in a default one and a detached one are told in words, and how to attach it again', {
  skip,
}, async (t) => {
  const { storage, url } = await openOnServer(t);
  const { db } = storage;
  const insert = (runId: string) =>
    db.insertInto('run_inputs').values({ run_id: runId, messages: '[]', context: null }).execute();
  const words = async () => {
    const { findings, notes } = await checkServer(db, 'service');
    return { findings, notes: notes.filter((note) => /partition|run_inputs/.test(note)) };
  };
  assert.deepEqual(await words(), { findings: [], notes: [] });
  const whole = await partitionFacts(db, 'service');
  assert.deepEqual(
    [whole.partitions['run_inputs'], whole.missingPartitions, whole.defaultPartitionRows, whole.detachedPartitions],
    [3, [], {}, []],
  );

  const next = partitionAt(inputs, Date.now() + weekMs);
  await insert(newId(Date.now() + weekMs));
  await executeAt(url, `alter table service.run_inputs detach partition service.${next.name}`);
  const detached = await words();
  assert.deepEqual(detached.notes, []);
  assert.equal(detached.findings.length, 1);
  const [, command = ''] = /Attach it again with `([^`]+)`/.exec(detached.findings[0] ?? '') ?? [];
  assert.deepEqual(await db.selectFrom('run_inputs').select('run_id').execute(), []);
  await executeAt(url, command);
  assert.deepEqual(await words(), { findings: [], notes: [] });
  assert.equal((await db.selectFrom('run_inputs').select('run_id').execute()).length, 1);

  await executeAt(url, 'alter table service.run_inputs detach partition service.run_inputs_earlier');
  await insert(newId());
  await insert('an id of no time');
  const now = partitionAt(inputs, Date.now());
  const facts = await partitionFacts(db, 'service');
  assert.deepEqual(
    [facts.missingPartitions, facts.defaultPartitionRows, facts.detachedPartitions],
    [[now.name], { run_inputs_default: 2 }, ['run_inputs_earlier']],
  );
  const { findings, notes } = await words();
  assert.match(findings.join(), /run_inputs_earlier is no partition any more: its rows are missing/);
  assert.match(notes[0] ?? '', new RegExp(`${now.name} of the present is not there.*the default one`));
  assert.match(notes[1] ?? '', /run_inputs_default has 2 rows/);

  await executeAt(url, 'drop table service.run_inputs_earlier');
  await storage.dialect.partitions?.prepare(Date.now());
  assert.deepEqual(await words(), { findings: [], notes: [notes[1]?.replace('has 2', 'has 1')] });
});

test('the statements of the guide show partitions and bring rows of a default one into their own', {
  skip,
}, async (t) => {
  const { storage, url } = await openOnServer(t);
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');
  const blocks = [...guide.matchAll(/```sql\n(.*?)```/gs)].map(([, text = '']) => text);
  const [sizes = '', moving = ''] = blocks;
  const events = partitionedTables.find(({ table }) => table === 'run_events');
  assert.ok(events !== undefined && sizes.includes('pg_inherits') && moving.startsWith('begin;'));
  const [shown, then] = [Date.parse('2026-11-23'), Date.now() + 10 * weekMs].map((at) => partitionAt(events, at));
  assert.ok(shown !== undefined && then !== undefined);
  for (const text of [shown.name, shown.from, shown.below]) assert.ok(moving.includes(text), text);
  const id = newId(Date.now() + 10 * weekMs);
  await storage.db
    .insertInto('run_events')
    .values({ run_id: id, first_sequence: 0, last_sequence: 0, events: '[]' })
    .execute();
  const own = moving.replaceAll(shown.name, then.name).replaceAll(shown.from, then.from);
  await executeAt(url, own.replaceAll(shown.below, then.below));
  const places = await withPostgres(url, (client) =>
    client.query(`select split_part(tableoid::regclass::text, '.', 2) as place from service.run_events`),
  );
  assert.deepEqual(places.rows, [{ place: then.name }]);
  const { rows } = await withPostgres(url, (client) => client.query(sizes));
  assert.ok(rows.some(({ relname }) => relname === then.name));
});
