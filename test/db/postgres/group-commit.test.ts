import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeInserts } from '../../../src/db/postgres/merged-inserts.ts';
import { ConditionFailedError, insertStatement, type Statement, updateStatement } from '../../../src/db/statement.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { eventually } from '../../support/eventually.ts';
import { withPostgres } from '../../support/postgres-server.ts';
import { agentNames, insertAgent } from '../rows.ts';
import { openOnServer, skip } from './opened.ts';

const setVersion = ({ db }: RootStorage) =>
  updateStatement(
    db,
    'agents',
    (name: string, from: number, to: number) => ({
      set: { current_version: to },
      where: { name, current_version: from },
    }),
    { mustChange: true },
  );

const oks = (results: readonly { readonly ok: boolean }[]): boolean[] => results.map(({ ok }) => ok);

test('units of a group are each all or nothing, in their order, and each with its own error', { skip }, async (t) => {
  const { storage } = await openOnServer(t);
  const insert = (name: string) => insertAgent(storage.db, name);
  const change = setVersion(storage);
  const failing = change('a', 7, 8);
  const results = await storage.dialect.commitUnits([
    [insert('a')],
    [insert('b'), failing],
    [insert('c'), insert('a')],
    [change('a', 1, 2), insert('d')],
    [],
    [{ sql: 'insert into nothing_here values (1)', parameters: [] }],
    [insert('e')],
  ]);
  assert.deepEqual(oks(results), [true, false, false, true, true, false, true]);
  const [, condition, taken, , , unknown] = results;
  assert.ok(condition !== undefined && !condition.ok && condition.error instanceof ConditionFailedError);
  assert.equal(condition.error.statement, failing);
  assert.ok(taken !== undefined && !taken.ok && unknown !== undefined && !unknown.ok);
  assert.equal(storage.dialect.classify(taken.error), 'unique-violation');
  assert.equal(storage.dialect.classify(unknown.error), null);
  assert.deepEqual(await agentNames(storage.db), ['a', 'd', 'e']);
});

test('equal inserts are one statement, and never pass a statement that names their table', { skip }, async (t) => {
  const { storage } = await openOnServer(t);
  const { db } = storage;
  const heartbeat = insertStatement(db, 'run_heartbeats', (id: string) => ({ run_id: id, beat_at: 1 }));
  const agent = insertStatement(db, 'agents', (name: string) => ({ tenant_id: 't', name, current_version: 1 }));
  const remove: Statement = { sql: `delete from "service"."agents" where "name" = $1`, parameters: ['b'] };
  const plain = mergeInserts([agent('a'), heartbeat('1'), agent('b'), heartbeat('2')]);
  assert.deepEqual(
    plain.map(({ parameters }) => parameters),
    [
      ['t', 'a', 1, 't', 'b', 1],
      ['1', 1, '2', 1],
    ],
  );
  const mixed = [agent('a'), heartbeat('1'), remove, agent('b'), heartbeat('2'), { ...agent('c'), isShared: true }];
  assert.deepEqual(
    mergeInserts(mixed).map(({ parameters }) => parameters),
    [['t', 'a', 1], ['1', 1, '2', 1], ['b'], ['t', 'b', 1], ['t', 'c', 1]],
  );
  assert.deepEqual(oks(await storage.dialect.commitUnits([[agent('b')], [remove, agent('b')], [agent('c')]])), [
    true,
    true,
    true,
  ]);
  assert.deepEqual(await agentNames(db), ['b', 'c']);
});

test('a lock that somebody holds elsewhere stalls those alone that need it', { skip }, async (t) => {
  const { storage, url } = await openOnServer(t);
  await storage.batch.write([insertAgent(storage.db, 'locked')]);
  const change = setVersion(storage);
  await withPostgres(url, async (client) => {
    await client.query(`begin; update service.agents set current_version = 5 where name = 'locked'`);
    let isWritten = false;
    const blocked = storage.batch.write([change('locked', 1, 2)]).finally(() => {
      isWritten = true;
    });
    const others = ['a', 'b', 'c'].map((name) => storage.batch.write([insertAgent(storage.db, name)]));
    await Promise.all(others);
    await storage.batch.write([insertAgent(storage.db, 'd')]);
    assert.equal(isWritten, false);
    await client.query('rollback');
    await blocked;
  });
  assert.deepEqual(await agentNames(storage.db), ['a', 'b', 'c', 'd', 'locked']);
});

test('what a unit enqueues while it is being written is written after it', { skip }, async (t) => {
  const { storage, url } = await openOnServer(t);
  await storage.batch.write([insertAgent(storage.db, 'locked')]);
  const change = setVersion(storage);
  const order: string[] = [];
  const steps = [change('locked', 1, 2), change('locked', 2, 3)];
  const unit = {
    collect: () => {
      order.push('collected');
      return steps.splice(0, 1);
    },
    committed: () => void order.push('committed'),
    failed: () => void order.push('failed'),
  };
  await withPostgres(url, async (client) => {
    await client.query(`begin; update service.agents set current_version = 5 where name = 'locked'`);
    storage.batch.enqueue(unit);
    await eventually('it is being written', () => order.length === 1);
    storage.batch.enqueue(unit);
    await storage.batch.write([insertAgent(storage.db, 'other')]);
    assert.deepEqual(order, ['collected']);
    await client.query('rollback');
    await eventually('both are written', () => order.length === 4);
  });
  assert.deepEqual(order, ['collected', 'committed', 'collected', 'committed']);
});

test('groups of two processes that take the same rows the other way round come out right', { skip }, async (t) => {
  const { storage, again } = await openOnServer(t);
  const other = await again();
  await storage.batch.write(['a', 'b'].map((name) => insertAgent(storage.db, name)));
  const rise = (name: string): Statement => ({
    sql: `update "service"."agents" set "current_version" = "current_version" + 1 where "name" = $1`,
    parameters: [name],
    mustChange: true,
  });
  const rounds = Array.from({ length: 40 }, (_, index) => index);
  await Promise.all(
    rounds.flatMap(() => [
      storage.dialect.commitUnits([[rise('a')], [rise('b')]]),
      other.storage.dialect.commitUnits([[rise('b')], [rise('a')]]),
    ]),
  );
  const rows = await storage.db.selectFrom('agents').select('current_version').execute();
  assert.deepEqual(
    rows.map((row) => row.current_version),
    [81, 81],
  );
});
