import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeDeletes } from '../../../src/db/postgres/merged-deletes.ts';
import { partitionAt, partitionedTables, timeOf } from '../../../src/db/postgres/partition-ranges.ts';
import type { Statement } from '../../../src/db/statement.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { openOnServer, skip } from './opened.ts';

/** Names that have a meaning in a list of the server, or none in a byte. */
const strange = [
  '',
  ' ',
  ',',
  '{}',
  'NULL',
  'null',
  '"',
  '\\',
  `a"b\\c'd`,
  'é',
  '\u{1F600}',
  '\uFFFD',
  'Z',
  'a',
  'b\nc',
];

const insertMarks = ({ db }: RootStorage, targets: readonly string[], sweptUntil = 1): Promise<unknown> =>
  db
    .insertInto('retention_marks')
    .values(targets.map((target) => ({ tenant_id: 't', target, swept_until: sweptUntil })))
    .execute();

const targetsOf = async ({ db }: RootStorage): Promise<string[]> =>
  (await db.selectFrom('retention_marks').select('target').orderBy('target').execute()).map(({ target }) => target);

const removal = ({ db }: RootStorage, target: string, from = 0): Statement =>
  db
    .deleteFrom('retention_marks')
    .where((eb) => eb.and([eb('target', '=', target), eb('swept_until', '>=', from)]))
    .compile();

test('deletions that are made as one remove what they would one by one, whatever the values are', {
  skip,
}, async (t) => {
  const { storage } = await openOnServer(t);
  const kept = ['c', 'é!', '""', '{,}'];
  await insertMarks(storage, [...strange, ...kept]);
  const deletions = [...strange, 'not there', strange[0] ?? ''].map((target) => removal(storage, target));
  assert.equal(mergeDeletes(deletions).length, 1);
  await storage.write(deletions);
  assert.deepEqual((await targetsOf(storage)).toSorted(), kept.toSorted());
});

test('each of the conditions holds in deletions that are made as one', { skip }, async (t) => {
  const { storage } = await openOnServer(t);
  const names = Array.from({ length: 20 }, (_, index) => `n${index}`);
  await insertMarks(storage, names, 5);
  // Every other one asks for a later row than there is; the values of two rows must not be taken for each other's.
  const deletions = names.map((name, index) => removal(storage, name, index % 2 === 0 ? 5 : 6));
  assert.equal(mergeDeletes(deletions).length, 1);
  await storage.write(deletions);
  assert.deepEqual(await targetsOf(storage), names.filter((_, index) => index % 2 === 1).toSorted());
});

test('what is not a deletion by plain values keeps all statements in their order', { skip }, async (t) => {
  const { storage } = await openOnServer(t);
  const ten = Array.from({ length: 10 }, (_, index) => removal(storage, `n${index}`));
  const insert = storage.db
    .insertInto('retention_marks')
    .values({ tenant_id: 't', target: 'n3', swept_until: 1 })
    .compile();
  const [first, ...others] = ten;
  assert.ok(first !== undefined);
  const mixed: readonly (readonly Statement[])[] = [
    [...ten, insert, ...ten],
    [...others, { ...first, mustChange: true }],
    [...others, { ...first, sql: `${first.sql} returning *` }].toReversed(),
    ten.slice(0, 7),
  ];
  for (const statements of mixed) assert.deepEqual(mergeDeletes(statements), statements);
  await insertMarks(storage, ['n3', 'n4']);
  await storage.write([...ten, insert]);
  assert.deepEqual(await targetsOf(storage), ['n3']);
});

test('rows that go together are looked for in the partitions where they may be, by their keys', { skip }, async (t) => {
  const { storage } = await openOnServer(t);
  const { partitions } = storage.dialect;
  assert.ok(partitions !== undefined);
  for (let week = 1; week < 6; week += 1) await partitions.prepare(Date.now() + week * 7 * 86_400_000);
  const idAt = (timeMs: number, index: number): string => {
    const hex = timeMs.toString(16).padStart(12, '0');
    return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(index).padStart(12, '0')}`;
  };
  const ids = Array.from({ length: 4000 }, (_, index) => idAt(Date.now() + index * 800_000, index));
  await storage.db
    .insertInto('run_inputs')
    .values(ids.map((runId) => ({ run_id: runId, messages: 'x'.repeat(200), context: null })))
    .execute();
  const inputs = partitionedTables.find(({ table }) => table === 'run_inputs');
  assert.ok(inputs !== undefined);
  const weeks = Map.groupBy(ids, (id) => partitionAt(inputs, timeOf(id)).name);
  const ofOneWeek = [...weeks.values()][2] ?? [];
  assert.ok(ofOneWeek.length > 100);
  const [merged] = mergeDeletes(
    ofOneWeek
      .slice(0, 100)
      .map((id) => storage.db.deleteFrom('run_inputs').where('run_id', '=', id).compile() satisfies Statement),
  );
  assert.ok(merged !== undefined);
  const { rows } = await storage.db.executeQuery<Record<string, string>>({
    ...storage.db.deleteFrom('run_inputs').compile(),
    ...{ sql: `explain (analyze, costs off) ${merged.sql}`, parameters: merged.parameters },
  });
  const plan = rows.map((row) => Object.values(row).join()).join('\n');
  const read = [...plan.matchAll(/run_inputs_(\d{8}|earlier|default)/g)].map(([, name]) => name);
  assert.equal(new Set(read).size, 1, plan);
});
