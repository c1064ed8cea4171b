import assert from 'node:assert/strict';
import type { Kysely } from 'kysely';
import { movedTables } from '../../src/db/move/moved-tables.ts';
import { shapeOf } from '../../src/db/move/table-walk.ts';
import { forEachStore, openTestStorage } from '../support/store.ts';

const given = 'x\u0000y\uD800z';
const stored = 'x\uFFFDy\uFFFDz';

forEachStore('every text column of every store holds U+0000 and half surrogate pairs as U+FFFD', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const tables = movedTables.filter((table) => !/^(run_|runs$|tool_invocations$)/.test(table));
  assert.ok(tables.length > 30);
  for (const table of [...tables, 'run_inputs', 'run_events', 'run_steps', 'tool_invocations', 'runs'] as const) {
    const { columns } = await shapeOf(storage, table);
    const row = Object.fromEntries(
      columns.map(({ name, kind }) => [name, kind === 'Text' ? given : kind === 'Bytes' ? Buffer.from([0]) : 1]),
    );
    const db = storage.db as unknown as Kysely<Record<string, Record<string, unknown>>>;
    await db.insertInto(table).values(row).execute();
    const texts = columns.filter(({ kind }) => kind === 'Text').map(({ name }) => name);
    if (texts.length === 0) continue;
    let query = db.selectFrom(table).select(texts);
    for (const name of texts) query = query.where(name, '=', given);
    const found = await query.executeTakeFirst();
    assert.deepEqual({ ...found }, Object.fromEntries(texts.map((name) => [name, stored])), table);
  }
});
