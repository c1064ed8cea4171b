import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { insertStatement, type Statement } from '../../../src/db/statement.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { type Cut, type CuttingProxy, isCommitAlone, startCuttingProxy } from '../../support/cutting-proxy.ts';
import { agentNames, insertAgent } from '../rows.ts';
import { openOnServer, skip } from './opened.ts';

const kinds: readonly Cut[] = ['before', 'after', 'within', 'late'];

/** A store behind a proxy that cuts, and the same without it. */
const openBehindProxy = async (t: TestContext) => {
  const direct = await openOnServer(t);
  const proxy = await startCuttingProxy(direct.url);
  const postgres = { connectionString: proxy.url, directConnectionString: null, schema: 'service', maxConnections: 8 };
  const { storage } = await direct.again({ postgres });
  t.after(() => proxy.close());
  return { direct: direct.storage, storage, proxy };
};

/** What the work is refused with. */
const refusal = async (work: Promise<unknown>): Promise<Error> => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error, 'it is refused');
  return error;
};

// A connection that keeps its statements sends their texts once, and what they are bound to each time.
const isGroup = (piece: Buffer): boolean =>
  piece.includes('isolation level read committed') || piece.includes('run.note');

/** Cuts the next piece that is such a one, once. */
const cutNext = (proxy: CuttingProxy, is: (piece: Buffer) => boolean, kind: Cut): void => {
  proxy.plan = (piece) => {
    if (!is(piece)) return null;
    proxy.plan = () => null;
    return kind;
  };
};

/** What a run writes: events with a key, and a booking in a counter, which twice would be wrong. */
const runUnits = ({ db, stores }: RootStorage) => {
  const journal = stores(createRunJournal(null, null));
  const count: Statement = {
    sql: `insert into "service"."quota_usage" as u (tenant_id, agent_name, period, period_start, runs, updated_at)
      values ($1, '', 'Daily', '2026-11-23', 1, 0)
      on conflict (tenant_id, agent_name, period, period_start) do update set runs = u.runs + 1`,
    parameters: ['t'],
  };
  return {
    unit: (runId: string, at: number): readonly Statement[] => [
      journal.packed('t', runId, at, at, JSON.stringify([['run.note', at, {}]])),
      count,
    ],
    count,
    packs: async (): Promise<readonly string[]> =>
      (await db.selectFrom('run_events').select(['run_id', 'first_sequence']).execute()).map(
        (row) => `${row.run_id} ${row.first_sequence}`,
      ),
    counted: async (): Promise<number> =>
      (await db.selectFrom('quota_usage').select('runs').executeTakeFirst())?.runs ?? 0,
  };
};

for (const kind of kinds)
  test(`a group that is cut ${kind} it is answered is written once, and its units know it`, { skip }, async (t) => {
    const { storage, direct, proxy } = await openBehindProxy(t);
    const { unit } = runUnits(storage);
    const { packs, counted } = runUnits(direct);
    await storage.batch.write(unit('a', 0));
    cutNext(proxy, isGroup, kind);
    await Promise.all([1, 2, 3].map((at) => storage.batch.write(unit('a', at))));
    assert.equal(proxy.cuts, 1);
    assert.deepEqual((await packs()).toSorted(), ['a 0', 'a 1', 'a 2', 'a 3']);
    // Where the first message comes late, it finds the rows of the second.
    await storage.batch.write(unit('a', 4));
    assert.equal(await counted(), 5);
  });

for (const kind of kinds)
  test(`a group in which nothing says whether it was written, cut ${kind} its commit is answered, is written once`, {
    skip,
  }, async (t) => {
    const { storage, direct, proxy } = await openBehindProxy(t);
    const { count } = runUnits(storage);
    const { counted } = runUnits(direct);
    await storage.batch.write([count]);
    cutNext(proxy, isCommitAlone, kind);
    await storage.batch.write([count]);
    cutNext(proxy, (piece) => piece.includes('quota_usage'), kind);
    await storage.batch.write([count]);
    assert.equal(proxy.cuts, 2);
    assert.equal(await counted(), 3);
  });

test('a writer that was replaced loses also where its connection was cut', { skip }, async (t) => {
  const { storage, direct, proxy } = await openBehindProxy(t);
  const { unit } = runUnits(storage);
  const other = runUnits(direct);
  await storage.batch.write(unit('a', 0));
  // While the first process hears nothing another one closes the run, with an event of its own under the same number.
  cutNext(proxy, isGroup, 'before');
  const [pack] = other.unit('a', 1);
  assert.ok(pack !== undefined);
  await direct.batch.write([{ ...pack, parameters: [...pack.parameters.slice(0, 3), '[["run.failed",9,{}]]'] }]);
  const error = await refusal(storage.batch.write(unit('a', 1)));
  assert.equal(storage.dialect.classify(error.cause ?? error), 'unique-violation');
  assert.equal(await other.counted(), 1);
});

test('hundreds of cuts at random: nothing twice, nothing that was acknowledged is lost', { skip }, async (t) => {
  const { storage, direct, proxy } = await openBehindProxy(t);
  const { unit } = runUnits(storage);
  const { packs, counted } = runUnits(direct);
  const insert = insertStatement(storage.db, 'agents', (name: string) => ({
    ...{ tenant_id: 't', name, current_version: 1 },
  }));
  proxy.plan = (piece) =>
    isGroup(piece) && Math.random() < 0.5 ? (kinds[Math.floor(Math.random() * kinds.length)] ?? null) : null;
  const runs = Array.from({ length: 12 }, (_, index) => `run-${index}`);
  const expected: string[] = [];
  await Promise.all(
    runs.map(async (runId) => {
      for (let at = 0; proxy.cuts < 150; at += 1) {
        await storage.batch.write(unit(runId, at));
        expected.push(`${runId} ${at}`);
        // One that says by itself that it was there before, among those that do not.
        if (at % 3 === 0) await storage.batch.write([insert(`${runId}-${at}`), ...unit(`${runId}-side`, at)]);
      }
    }),
  );
  proxy.plan = () => null;
  await storage.batch.write(unit('last', 0));
  const all = await packs();
  assert.equal(new Set(all).size, all.length);
  const missing = expected.filter((pack) => !all.includes(pack));
  assert.deepEqual(missing, []);
  assert.equal(await counted(), all.length);
  const names = await agentNames(direct.db);
  assert.equal(names.length, all.filter((pack) => pack.includes('side')).length);
});

test('a unit of work that is cut is done once, before its commit and at it', { skip }, async (t) => {
  const { storage, direct, proxy } = await openBehindProxy(t);
  let attempts = 0;
  const make = (name: string): Promise<string> => {
    const insert = insertAgent(storage.db, name);
    return storage.transaction(async (unit) => {
      attempts += 1;
      await unit.write([insert]);
      return `made ${name}`;
    });
  };
  await make('first');
  for (const kind of kinds) {
    attempts = 0;
    cutNext(proxy, (piece) => piece.includes('insert into'), kind);
    await make(`statement-${kind}`);
    assert.equal(attempts, 2, kind);
  }
  for (const kind of kinds) {
    attempts = 0;
    cutNext(proxy, isCommitAlone, kind);
    assert.equal(await make(`commit-${kind}`), `made commit-${kind}`);
    assert.equal(attempts, kind === 'before' ? 2 : 1, kind);
  }
  assert.equal(proxy.cuts, kinds.length * 2);
  const names = await agentNames(direct.db);
  assert.equal(new Set(names).size, names.length);
  assert.equal(names.length, 1 + kinds.length * 2);
});

test('a read whose connection is cut is asked again', { skip }, async (t) => {
  const { storage, proxy } = await openBehindProxy(t);
  await storage.batch.write([insertAgent(storage.db, 'a')]);
  for (const kind of ['before', 'after', 'within'] as const) {
    cutNext(proxy, (piece) => piece.includes('from "service"."agents"'), kind);
    assert.deepEqual(await agentNames(storage.db), ['a']);
    cutNext(proxy, (piece) => piece.includes('from "service"."agents"'), kind);
    assert.equal((await storage.scan(storage.db.selectFrom('agents').select('name'))).length, 1);
  }
  assert.equal(proxy.cuts, 6);
});

test('a server that is away for seconds is waited for by what runs write', { skip }, async (t) => {
  const { storage, direct, proxy } = await openBehindProxy(t);
  const { unit } = runUnits(storage);
  await storage.batch.write(unit('a', 0));
  proxy.shut();
  let isWritten = false;
  const written = storage.batch.write(unit('a', 1)).finally(() => {
    isWritten = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal(isWritten, false);
  proxy.open();
  await written;
  assert.deepEqual(await runUnits(direct).packs(), ['a 0', 'a 1']);
});
