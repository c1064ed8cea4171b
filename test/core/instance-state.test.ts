import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { instanceState, type LeftoverName, leftovers } from '../../src/core/instance-state.table.ts';
import { byKey, byTenant, type LeftoverClosings } from '../../src/core/instance-state.ts';
import { tableNames } from '../../src/db/tables.ts';
import { instanceStateOf } from '../support/instance-state.ts';

const clock = { now: 1_000_000 };
const now = () => clock.now;
const owned = () => instanceStateOf(true, now);
const shared = () => instanceStateOf(false, now);

/** A store that counts how often it is asked, and can be away. */
const source = (values: Record<string, number>) => {
  const asked: (readonly string[])[] = [];
  const store = { values, asked, isAway: false };
  const load = async (keys: readonly string[]): Promise<(number | null)[]> => {
    asked.push(keys);
    await Promise.resolve();
    if (store.isAway) throw new Error('away');
    return keys.map((key) => store.values[key] ?? null);
  };
  return { store, load };
};

test('an entry is read once, and from memory until it changes', async () => {
  const { store, load } = source({ a: 1 });
  const entries = owned().entries('agentVersions', { load });
  assert.equal(entries.known('a'), undefined);
  const [one, other] = await Promise.all([entries.read('a'), entries.read('a')]);
  assert.deepEqual([one, other, store.asked.length], [1, 1, 1], 'callers of one moment share one question');
  clock.now += 1e9;
  assert.equal(entries.read('a'), 1, 'without a promise');
  store.values = { a: 2 };
  entries.changed('a');
  assert.equal(entries.known('a'), undefined);
  assert.equal(await entries.read('a'), 2);
});

test('what was read before a change is not remembered after it', async () => {
  for (const ask of ['read', 'readAll'] as const) {
    const { store, load } = source({ a: 1 });
    const entries = owned().entries('agentVersions', { load });
    const reading = ask === 'read' ? entries.read('a') : entries.readAll(['a']);
    entries.changed('a');
    const next = entries.read('a');
    await Promise.all([reading, next]);
    assert.equal(store.asked.length, 2, `${ask}: whoever asks after the change does not join a read from before it`);
    assert.equal(entries.known('a'), 1);
  }
});

test('a read from before a change that answers last does not take the place of what is true now', async () => {
  for (const ask of ['read', 'readAll'] as const) {
    const answers: PromiseWithResolvers<readonly number[]>[] = [];
    const entries = owned().entries<number>('agentVersions', {
      load() {
        const answer = Promise.withResolvers<readonly number[]>();
        answers.push(answer);
        return answer.promise;
      },
    });
    const before = ask === 'read' ? entries.read('a') : entries.readAll(['a']);
    entries.changed('a');
    const after = entries.read('a');
    answers[1]?.resolve([2]);
    await after;
    answers[0]?.resolve([1]);
    await before;
    assert.equal(entries.known('a'), 2, ask);
    assert.equal(await entries.read('a'), 2, ask);
  }
});

test('a read that failed is refused, and the next one asks again', async () => {
  const { store, load } = source({ a: 1, b: 1 });
  const entries = owned().entries('agentVersions', { load });
  await entries.readAll(['a', 'b']);
  store.isAway = true;
  entries.changed('a');
  await assert.rejects(async () => entries.read('a'), { message: 'away' });
  await assert.rejects(async () => entries.readAll(['a', 'b']), { message: 'away' });
  assert.equal(entries.known('a'), undefined);
  assert.equal(entries.read('b'), 1, 'what the owner has read stays true');
  store.isAway = false;
  assert.equal(await entries.read('a'), 1);
});

test('what is not stored is remembered only where that is bounded, and never for what came meanwhile', async () => {
  const { store, load } = source({});
  const plain = owned().entries('agentVersions', { load });
  for (let times = 0; times < 2; times += 1) assert.equal(await plain.read('x'), null);
  assert.equal(store.asked.length, 2);
  const bounded = owned().entries('agentVersions', { load, mostAbsent: 2 });
  for (const key of ['x', 'y', 'z']) assert.equal(await bounded.read(key), null);
  assert.equal(bounded.read('z'), null);
  assert.ok(bounded.read('x') instanceof Promise, 'the oldest was forgotten');
  store.values = { z: 3 };
  bounded.changed('z');
  assert.equal(await bounded.read('z'), 3);
});

test('past ten thousand entries the oldest is read again', async () => {
  const { load } = source(Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`k${index}`, index])));
  const entries = owned().entries('agentVersions', { load });
  await entries.readAll(Array.from({ length: 10_001 }, (_, index) => `k${index}`));
  assert.deepEqual([entries.known('k0'), entries.known('k1'), entries.known('k10000')], [undefined, 1, 10_000]);
});

test('a shared store is asked again once a copy is as old as the table allows, or the clock was set back', async () => {
  const { store, load } = source({ a: 1 });
  const entries = shared().entries('agentVersions', { load });
  const { sharedAgeMs } = instanceState.agentVersions;
  await entries.read('a');
  clock.now += sharedAgeMs - 1;
  assert.equal(entries.known('a'), 1);
  clock.now += 1;
  assert.equal(entries.known('a'), undefined);
  store.isAway = true;
  await assert.rejects(async () => entries.read('a'), { message: 'away' }, 'the old copy does not take its place');
  store.isAway = false;
  await entries.read('a');
  clock.now -= 1;
  assert.equal(entries.known('a'), undefined);
});

test('a table refuses until it was read whole, and from then on follows what is committed', async () => {
  const state = owned();
  const rows = [{ id: 'a', at: 1 }];
  let isAway = true;
  const read = async () => {
    if (isAway) throw new Error('away');
    return rows;
  };
  const stops = state.table<{ id: string; at: number }>('emergencyStops', { read, keyOf: ({ id }) => id });
  await assert.rejects(state.load(), { message: 'away' });
  const isRefused = { code: 'store-unavailable' };
  assert.throws(() => stops.rows, isRefused);
  assert.throws(() => stops.put({ id: 'b', at: 2 }), isRefused, 'one row is not the table');
  assert.throws(() => stops.drop('a'), isRefused);
  isAway = false;
  await state.load();
  stops.put({ id: 'b', at: 2 });
  stops.put({ id: 'a', at: 3 });
  assert.deepEqual(
    [...stops.rows.values()].map(({ at }) => at),
    [3, 2],
  );
  stops.drop('a');
  clock.now += 1e9;
  assert.deepEqual([...stops.rows.keys()], ['b']);
});

test('a table of a shared store that was not read again in time refuses', async () => {
  const state = shared();
  const stops = state.table<string>('emergencyStops', { read: async () => ['a'], keyOf: (row) => row });
  await state.load();
  clock.now += instanceState.emergencyStops.sharedAgeMs - 1;
  assert.equal(stops.rows.size, 1);
  clock.now += 1;
  assert.throws(() => stops.rows, { code: 'store-unavailable' });
  await state.load();
  assert.equal(stops.rows.size, 1);
});

test('one state is kept once', () => {
  const state = owned();
  state.entries('quotaRules', { load: byKey(async () => []) });
  assert.throws(() => state.entries('quotaRules', { load: byKey(async () => []) }), /quotaRules is kept twice/);
});

test('names of a tenant are loaded by their tenant', async () => {
  const load = byTenant(async (tenantId, names) => names.map((name) => `${tenantId}:${name}`));
  assert.deepEqual(await load(['acme/a', 'acme/b/c']), ['acme:a', 'acme:b/c']);
  assert.deepEqual(await load([]), []);
});

const closingsOf = (closed: string[], failing: LeftoverName | null = null): LeftoverClosings => {
  const close = (name: string) => async (): Promise<void> => {
    if (name === failing) throw new Error(name);
    closed.push(name);
  };
  return Object.fromEntries(Object.keys(leftovers).map((name) => [name, close(name)])) as unknown as LeftoverClosings;
};

test('the owner of a store closes all that is open, runs before what they hold; others only what anybody may', async () => {
  const all: string[] = [];
  await owned().recover(closingsOf(all));
  assert.deepEqual(all, Object.keys(leftovers));
  for (const held of ['jobs', 'sessionLocks', 'idempotencyMarks'])
    assert.ok(all.indexOf('runs') < all.indexOf(held), held);
  const some: string[] = [];
  await shared().recover(closingsOf(some));
  assert.deepEqual(some, ['heartbeats', 'deletedSessions']);
});

test('a closing that fails ends the recovery, and is told', async () => {
  const closed: string[] = [];
  await assert.rejects(owned().recover(closingsOf(closed, 'sessionLocks')), { message: 'sessionLocks' });
  assert.deepEqual(closed, ['runs', 'jobs', 'quotaHolds']);
});

const designPage = readFileSync(new URL('../../docs/design/scale-out.md', import.meta.url), 'utf8');

/** Rows of the table below a heading of the design page, without its two lines of heading. */
const rowsBelow = (heading: string): string[] => {
  const [, section = ''] = designPage.split(`## ${heading}\n`);
  return section
    .split('\n## ', 1)
    .join('')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2);
};

test('docs/design/scale-out.md lists every state as it is, with a test that exists, and no other', () => {
  const ageText = (ageMs: number | null) => (ageMs === null ? 'its own' : ageMs === 0 ? 'exact' : `${ageMs / 1000} s`);
  const expected = Object.entries(instanceState).map(([name, { kind, truth, sharedAgeMs }]) => {
    const where = truth.length === 0 ? 'this process' : truth.map((table) => `\`${table}\``).join(', ');
    return `| \`${name}\` | ${kind} | ${where} | ${ageText(sharedAgeMs)} |`;
  });
  const rows = rowsBelow('What may a process keep of the store?').map((row) => {
    const [, state, file] = /^(.* \|) `([^`]+)` \|$/.exec(row) ?? [];
    return { state, file: file ?? '' };
  });
  assert.deepEqual(
    rows.map(({ state }) => state),
    expected,
  );
  for (const { file } of rows) assert.ok(existsSync(new URL(`../../${file}`, import.meta.url)), file);
  const named: readonly string[] = Object.values(instanceState).flatMap(({ truth }) => truth);
  assert.deepEqual(
    named.filter((table) => !tableNames.some((name) => name === table)),
    [],
  );
});

test('docs/design/scale-out.md lists everything that may be left open, in its order', () => {
  const expected = Object.entries(leftovers).map(
    ([name, { ownerOnly, otherwise }]) => `| \`${name}\` | ${ownerOnly ? 'the owner' : 'anybody'} | ${otherwise} |`,
  );
  assert.deepEqual(rowsBelow('Who closes what a dead process left open?'), expected);
});
