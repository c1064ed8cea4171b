import assert from 'node:assert/strict';
import { migrations } from '../../../migrations/index.ts';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { createProtectedRows } from '../../../src/db/protection/protected-rows.ts';
import { forEachStore, openBareStorage, testStores } from '../../support/store.ts';

const rows = createProtectedRows(createContentCipher('a', { a: Buffer.alloc(32, 1).toString('base64') }));
const list = (length: number): string =>
  JSON.stringify(Array.from({ length }, (_, index) => ({ id: `${index}`, name: 'a "quoted" name' })));

/** How a sealed list was stored: with its number of members, of which the first is the sealed text. */
const sealedList = (runId: string, spans: string, length: number): string =>
  JSON.stringify([
    rows.seal('run_traces', 'acme', { run_id: runId, spans }).spans,
    ...Array.from({ length: length - 1 }, () => 0),
  ]);

// There are no such stores of a kind that came later.
const older = testStores.filter(({ after }) => after < 27);

forEachStore(
  'SEC-51 spans are counted in an older store, plain and sealed ones, and stay',
  async (t, store) => {
    const storage = await openBareStorage(t, store);
    const before = migrations.findIndex(({ name }) => name === '0027-span-counts');
    await migrate(storage, migrations.slice(0, before), () => 0);
    const stored = {
      none: '[]',
      one: list(1),
      'sealed-one': sealedList('sealed-one', list(1), 1),
      'sealed-three': sealedList('sealed-three', list(3), 3),
      three: list(3),
      torn: '[{"id":',
    };
    for (const [runId, spans] of Object.entries(stored))
      await storage.db
        .insertInto('run_traces')
        .values({
          run_id: runId,
          id: 't',
          tenant_id: 'acme',
          trace_id: 't',
          started_at: 1,
          ended_at: 2,
          spans,
        } as never)
        .execute();

    await migrate(storage, migrations, () => 0);
    const traces = await storage.db.selectFrom('run_traces').selectAll().orderBy('run_id').execute();
    assert.deepEqual(
      traces.map((row) => [row.run_id, row.span_count, rows.open('run_traces', 'acme', row).spans]),
      [
        ['none', 0, '[]'],
        ['one', 1, list(1)],
        ['sealed-one', 1, list(1)],
        ['sealed-three', 3, list(3)],
        ['three', 3, list(3)],
        ['torn', 0, '[{"id":'],
      ],
    );
    for (const row of traces.filter(({ run_id: runId }) => runId.startsWith('sealed')))
      assert.match(row.spans, /^acp:sealed:1:a:/);
  },
  older,
);
