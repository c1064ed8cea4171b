import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SqlDialect } from '../../src/db/dialect.ts';
import { ConditionFailedError, insertStatement, type Statement, updateStatement } from '../../src/db/statement.ts';
import { createStorage, type RootStorage } from '../../src/db/storage.ts';
import { temporaryFolder } from '../support/opened-store.ts';
import { durableStores, forEachStore, openTestStorage } from '../support/store.ts';
import { agentNames, insertAgent } from './rows.ts';

forEachStore('a failed unit leaves no trace and the others go through', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const insert = (name: string) => insertAgent(storage.db, name);
  const results = await storage.dialect.commitUnits([
    [insert('a')],
    [insert('b'), insert('a'), insert('c')],
    [insert('a')],
    [],
    [insert('d'), insert('e')],
  ]);
  assert.deepEqual(
    results.map((result) => result.ok),
    [true, false, false, true, true],
  );
  for (const result of results)
    if (!result.ok) assert.equal(storage.dialect.classify(result.error), 'unique-violation');
  assert.deepEqual(await agentNames(storage.db), ['a', 'd', 'e']);
});

forEachStore('an exchange gives the rows of each statement, and writes all of them or none', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const names = { ...storage.db.selectFrom('agents').select('name').orderBy('name').compile() };
  const answer = await storage.exchange([
    names,
    insertAgent(storage.db, 'a'),
    names,
    insertAgent(storage.db, 'b'),
    names,
  ]);
  assert.deepEqual(answer, [[], [], [{ name: 'a' }], [], [{ name: 'a' }, { name: 'b' }]]);
  await assert.rejects(storage.exchange([insertAgent(storage.db, 'c'), insertAgent(storage.db, 'a'), names]));
  assert.deepEqual(await agentNames(storage.db), ['a', 'b']);
  await assert.rejects(
    storage.transaction(async () => void (await storage.exchange([names]))),
    /inside a transaction/,
  );
});

forEachStore('a compiled write takes no row of which a column may be left out', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const agent = (name: string, version?: number) => ({
    tenant_id: 'default',
    name,
    ...(version !== undefined && { current_version: version }),
  });
  // @ts-expect-error the first row says which columns there are: a later one would lose its version, without a word
  const insert = insertStatement(storage.db, 'agents', agent);
  assert.deepEqual(insert('a', 1).sql, insert('b').sql);
  const change = (by?: string) => ({ set: { ...(by !== undefined && { deleted_by: by }) }, where: { name: 'a' } });
  // @ts-expect-error so would a change
  updateStatement(storage.db, 'agents', change);
});

forEachStore('a conditional write that finds no row fails its unit and nothing else', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const setVersion = updateStatement(
    storage.db,
    'agents',
    (from: number, to: number) => ({ set: { current_version: to }, where: { name: 'a', current_version: from } }),
    { mustChange: true },
  );
  await storage.batch.write([insertAgent(storage.db, 'a')]);
  const results = await storage.dialect.commitUnits([
    [insertAgent(storage.db, 'b'), setVersion(2, 3)],
    [setVersion(2, 3)],
    [setVersion(1, 2), insertAgent(storage.db, 'c')],
  ]);
  assert.deepEqual(
    results.map((result) => result.ok || result.error instanceof ConditionFailedError),
    [true, true, true],
  );
  assert.deepEqual(
    results.map((result) => result.ok),
    [false, false, true],
  );
  assert.deepEqual(await agentNames(storage.db), ['a', 'c']);
  const row = await storage.db.selectFrom('agents').selectAll().where('name', '=', 'a').executeTakeFirstOrThrow();
  assert.equal(row.current_version, 2);
});

forEachStore('an unknown table is an error of its unit only, and of no known kind', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const nonsense: Statement = { sql: 'insert into nothing_here values (1)', parameters: [] };
  const [bad, good] = await storage.dialect.commitUnits([[nonsense], [insertAgent(storage.db, 'a')]]);
  assert.ok(bad !== undefined && !bad.ok);
  assert.equal(storage.dialect.classify(bad.error), null);
  assert.ok(good?.ok);
});

/** A storage whose commits are counted. */
const counted = (dialect: SqlDialect): { storage: RootStorage; commits: number[] } => {
  const commits: number[] = [];
  const { lanes } = dialect;
  const storage = createStorage(
    {
      ...dialect,
      commitUnits: (units) => {
        commits.push(units.length);
        return dialect.commitUnits(units);
      },
      ...(lanes !== undefined && {
        lanes: {
          ...lanes,
          commit: (units, condense) => {
            commits.push(units.length);
            return lanes.commit(units, condense);
          },
        },
      }),
    },
    true,
  );
  return { storage, commits };
};

forEachStore('what is enqueued in one turn is one commit, in order of enqueueing', async (t, store) => {
  const { storage, commits } = counted((await openTestStorage(t, store)).dialect);
  const order: string[] = [];
  const settled: Promise<void>[] = [];
  const put = (name: string, statements: () => readonly Statement[]) =>
    settled.push(
      new Promise((resolve) => {
        const done = (word: string) => () => {
          order.push(`${name} ${word}`);
          resolve();
        };
        storage.batch.enqueue({
          collect: () => {
            order.push(`${name} collected`);
            return statements();
          },
          committed: done('committed'),
          failed: done('failed'),
        });
      }),
    );
  put('a', () => [insertAgent(storage.db, 'a')]);
  put('again', () => [insertAgent(storage.db, 'a')]);
  put('empty', () => []);
  put('broken', () => {
    throw new Error('cannot be collected');
  });
  put('b', () => [insertAgent(storage.db, 'b')]);
  assert.equal(order.length, 0);
  await Promise.all(settled);
  assert.deepEqual(commits, [3]);
  assert.deepEqual(
    order.filter((line) => line.endsWith('collected')),
    ['a', 'again', 'empty', 'broken', 'b'].map((name) => `${name} collected`),
  );
  assert.deepEqual(
    order.filter((line) => /committed|again failed|b failed/.test(line)),
    ['a committed', 'again failed', 'empty committed', 'b committed'],
  );
  assert.ok(order.includes('broken failed'));
});

forEachStore('units that arrive during a commit are the next one', async (t, store) => {
  const { storage, commits } = counted((await openTestStorage(t, store)).dialect);
  const later: Promise<void>[] = [];
  const first = new Promise<void>((resolve, reject) => {
    storage.batch.enqueue({
      collect: () => {
        later.push(
          storage.batch.write([insertAgent(storage.db, 'b')]),
          storage.batch.write([insertAgent(storage.db, 'c')]),
        );
        return [insertAgent(storage.db, 'a')];
      },
      committed: resolve,
      failed: reject,
    });
  });
  await first;
  await Promise.all(later);
  assert.deepEqual(commits, [1, 2]);
});

forEachStore('a group that still grows waits for it, for a few turns; a unit alone does not', async (t, store) => {
  const { storage, commits } = counted((await openTestStorage(t, store)).dialect);
  const write = (name: string) => storage.batch.write([insertAgent(storage.db, name)]);
  await write('alone');
  assert.deepEqual(commits, [1]);
  const growing = [write('a'), write('b')];
  await nextTurn();
  growing.push(write('c'));
  await Promise.all(growing);
  assert.deepEqual(commits, [1, 3]);
  // However long it goes on, those who came first are committed.
  const endless = [write('d0'), write('e0')];
  for (let index = 1; commits.length === 2; index += 1) {
    assert.ok(index < 20, 'still waiting');
    endless.push(write(`e${index}`));
    await nextTurn();
  }
  await Promise.all(endless);
});

forEachStore(
  'closing writes what is pending and refuses what comes after',
  async (t, store) => {
    const folder = temporaryFolder(t);
    await store.make(folder, 'tables');
    const first = createStorage(store.open(folder), true);
    const [early, late] = [insertAgent(first.db, 'early'), insertAgent(first.db, 'late')];
    const pending = first.batch.write([early]);
    const closing = first.close();
    await assert.rejects(first.batch.write([late]), /closed/);
    await Promise.all([pending, closing]);
    const second = createStorage(store.open(folder), true);
    t.after(async () => {
      await second.close();
      await store.remove(folder);
    });
    assert.deepEqual(await agentNames(second.db), ['early']);
  },
  durableStores,
);

forEachStore('the root handle inside a transaction is an immediate error', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const statement = insertAgent(storage.db, 'x');
  const unit = { collect: () => [statement], committed: () => undefined, failed: () => undefined };
  const misuses: (() => unknown)[] = [
    () => storage.db,
    () => storage.batch.write([statement]),
    () => storage.batch.enqueue(unit),
    () => storage.atomic(async () => undefined),
  ];
  for (const misuse of misuses) {
    const attempt = storage.atomic(async (trx) => {
      await trx.insertInto('agents').values({ tenant_id: 't', name: 'gone', current_version: 1 }).execute();
      await misuse();
    });
    await assert.rejects(attempt, /root store handle was used inside a transaction/);
  }
  assert.deepEqual(await agentNames(storage.db), []);
});

forEachStore('a transaction that throws leaves nothing, and others wait for its end', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const boom = new Error('boom');
  const seen: string[] = [];
  const failing = storage.atomic(async (trx) => {
    await trx.insertInto('agents').values({ tenant_id: 't', name: 'a', current_version: 1 }).execute();
    seen.push(...(await agentNames(trx)));
    throw boom;
  });
  const waiting = storage.batch.write([insertAgent(storage.db, 'b')]);
  await assert.rejects(failing, boom);
  await waiting;
  assert.deepEqual(seen, ['a']);
  assert.deepEqual(await agentNames(storage.db), ['b']);
});

forEachStore('times and amounts beyond 32 bits, and any text, come back as they were', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const texts = ['', 'ü€😀', "o'hara; drop table agents;--", 'line\nbreak\ttab', '\u0001', 'x'.repeat(100_000)];
  for (const [index, content] of texts.entries())
    await storage.db
      .insertInto('agent_versions')
      .values({
        tenant_id: 't',
        name: 'a',
        version: index + 1,
        content,
        updated_at: Number.MAX_SAFE_INTEGER - index,
        updated_by: null,
        restored_from: null,
      })
      .execute();
  const rows = await storage.db.selectFrom('agent_versions').selectAll().orderBy('version').execute();
  assert.deepEqual(
    rows.map((row) => [row.content, row.updated_at, row.updated_by]),
    texts.map((content, index) => [content, Number.MAX_SAFE_INTEGER - index, null]),
  );
});

forEachStore('rows are deleted in chunks, the oldest first', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const names = Array.from({ length: 25 }, (_, index) => `job-${String(index).padStart(2, '0')}`);
  await storage.batch.write(
    names.map((id, index) => ({
      ...storage.db
        .insertInto('jobs')
        .values({
          id,
          tenant_id: 't',
          handler_key: 'h',
          lane: 'l',
          target_name: 'n',
          status: 'Completed',
          max_attempts: 1,
          scheduled_for: index,
          created_at: index,
        } as never)
        .compile(),
    })),
  );
  const deleted: number[] = [];
  for (let count = -1; count !== 0; ) {
    count = await storage.dialect.deleteChunk('jobs', 'id', { column: 'created_at', below: 20 }, 8);
    deleted.push(count);
    if (deleted.length === 1) {
      const oldest = await storage.db.selectFrom('jobs').select('id').orderBy('id').executeTakeFirstOrThrow();
      assert.equal(oldest.id, 'job-08');
    }
  }
  assert.deepEqual(deleted, [8, 8, 4, 0]);
  const left = await storage.db.selectFrom('jobs').select('id').orderBy('id').execute();
  assert.deepEqual(
    left.map((row) => row.id),
    names.slice(20),
  );
});
