import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { instanceState } from '../../src/core/instance-state.table.ts';
import { createInstanceState } from '../../src/core/instance-state.ts';
import { type AnnouncementHub, announcementHub } from '../support/announcements.ts';
import { testClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';

interface Stop {
  readonly id: string;
  readonly reason: string;
}

const stop = (id: string, reason = 'fire'): Stop => ({ id, reason });
const { sharedAgeMs } = instanceState.emergencyStops;

/** Rows in a store that several processes share; it can be away, and answers when it is told to where that is asked for. */
const sharedRows = () => {
  const store = {
    rows: new Map<string, Stop>(),
    isAway: false,
    reads: 0,
    held: null as PromiseWithResolvers<void> | null,
    async read(): Promise<readonly Stop[]> {
      store.reads += 1;
      const rows = [...store.rows.values()];
      if (store.held !== null) await store.held.promise;
      if (store.isAway) throw new Error('away');
      return rows;
    },
    commit: (row: Stop) => void store.rows.set(row.id, row),
  };
  return store;
};

type SharedRows = ReturnType<typeof sharedRows>;

/** A process on the store, with a clock that the test moves. */
const openProcess = async (t: TestContext, store: SharedRows, hub: AnnouncementHub = announcementHub()) => {
  const clock = testClock({ at: 1_000_000, stands: true });
  const told: string[] = [];
  const say = (fields: Record<string, unknown>, message: string) => void told.push(`${fields['state']}: ${message}`);
  const state = createInstanceState({
    ownsStore: false,
    clock,
    announcements: hub.member(),
    log: { warn: say, error: say },
  });
  t.after(() => state.close());
  const stops = state.table<Stop>('emergencyStops', { read: () => store.read(), keyOf: ({ id }) => id });
  await state.load();
  return { clock, state, stops, told };
};

test('a stop that another process has put in force is seen within a second without any announcement', async (t) => {
  const store = sharedRows();
  const here = await openProcess(t, store);
  store.commit(stop('a'));
  assert.equal(here.stops.rows.size, 0);
  await here.clock.advance(sharedAgeMs - 1);
  assert.deepEqual([...here.stops.rows.keys()], ['a']);
  store.rows.delete('a');
  await here.clock.advance(sharedAgeMs - 1);
  assert.equal(here.stops.rows.size, 0);
});

test('a change is announced after its commit, and seen elsewhere without time passing', async (t) => {
  const store = sharedRows();
  const hub = announcementHub();
  const [here, there] = [await openProcess(t, store, hub), await openProcess(t, store, hub)];
  store.commit(stop('a'));
  here.stops.put(stop('a'));
  await eventually('the stop is seen there', () => there.stops.rows.has('a'));
  store.rows.delete('a');
  here.stops.drop('a');
  await eventually('it is gone there', () => there.stops.rows.size === 0);
});

test('what was announced while nobody could hear is read once they can again', async (t) => {
  const store = sharedRows();
  const hub = announcementHub();
  const [here, there] = [await openProcess(t, store, hub), await openProcess(t, store, hub)];
  hub.cut();
  store.commit(stop('a'));
  here.stops.put(stop('a'));
  assert.equal(there.stops.rows.size, 0);
  hub.mend();
  await eventually('the stop is seen there', () => there.stops.rows.has('a'));
});

test('a table that cannot be read again refuses once it is too old, and says so once', async (t) => {
  const store = sharedRows();
  const { clock, state, stops, told } = await openProcess(t, store);
  store.isAway = true;
  await clock.advance(sharedAgeMs - 1);
  assert.deepEqual([stops.rows.size, state.stale()], [0, []], 'what was read in time counts until its age');
  await clock.advance(sharedAgeMs);
  assert.throws(() => stops.rows, { code: 'store-unavailable' });
  assert.deepEqual(state.stale(), ['emergencyStops']);
  await assert.rejects(async () => state.current());
  assert.equal(told.length, 1, told.join('\n'));
  store.isAway = false;
  await clock.advance(sharedAgeMs);
  assert.deepEqual([state.stale(), stops.rows.size, told.length], [[], 0, 2]);
  assert.match(told[1] ?? '', /read again/);
});

test('who stood still longer than the age reads before they decide, and need not be refused', async (t) => {
  const store = sharedRows();
  const { clock, state, stops } = await openProcess(t, store);
  store.commit(stop('a'));
  clock.setAhead(60_000);
  assert.throws(() => stops.rows, { code: 'store-unavailable' });
  const reading = state.current();
  assert.ok(reading !== null);
  await reading;
  assert.deepEqual([...stops.rows.keys()], ['a']);
  assert.equal(state.current(), null);
});

test('who comes shortly before a copy is too old reads first, so that no later step of theirs is refused', async (t) => {
  const store = sharedRows();
  const { clock, state, stops } = await openProcess(t, store);
  // The process stood still, and its next timers have not come yet.
  clock.setAhead(sharedAgeMs - 1);
  const reading = state.current();
  assert.ok(reading !== null);
  await reading;
  clock.setAhead(sharedAgeMs - 1);
  assert.equal(stops.rows.size, 0);
});

test('until a copy is too old it counts, also where it cannot be read again', async (t) => {
  const store = sharedRows();
  const { clock, state, stops } = await openProcess(t, store);
  store.isAway = true;
  clock.setAhead(sharedAgeMs - 1);
  await state.current();
  assert.equal(stops.rows.size, 0);
  clock.setAhead(sharedAgeMs);
  await assert.rejects(async () => state.current());
});

test('a stop that is being written counts at once, and a read that does not see it yet takes nothing away', async (t) => {
  const store = sharedRows();
  const { clock, stops } = await openProcess(t, store);
  stops.ahead(stop('a'));
  assert.deepEqual([...stops.rows.keys()], ['a']);
  await clock.advance(sharedAgeMs * 3);
  assert.deepEqual([...stops.rows.keys()], ['a'], 'the write takes its time');
  store.commit(stop('a'));
  stops.put(stop('a'));
  store.rows.delete('a');
  await clock.advance(sharedAgeMs);
  assert.equal(stops.rows.size, 0, 'once it is written, the store says what counts');
  stops.ahead(stop('b'));
  stops.drop('b');
  await clock.advance(sharedAgeMs);
  assert.equal(stops.rows.size, 0, 'a write that failed leaves nothing');
});

test('a read that began before a commit of this process does not undo it', async (t) => {
  const store = sharedRows();
  store.commit(stop('old'));
  const { stops } = await openProcess(t, store);
  const held = Promise.withResolvers<void>();
  store.held = held;
  const reading = stops.refresh();
  store.commit(stop('new'));
  stops.put(stop('new'));
  store.rows.delete('old');
  stops.drop('old');
  held.resolve();
  await reading;
  assert.deepEqual([...stops.rows.keys()], ['new']);
});

test('refresh brings what was committed before the call, also while an older read is under way', async (t) => {
  const store = sharedRows();
  const { stops } = await openProcess(t, store);
  const held = Promise.withResolvers<void>();
  store.held = held;
  const first = stops.refresh();
  store.commit(stop('a'));
  const second = stops.refresh();
  store.held = null;
  held.resolve();
  await first;
  await second;
  assert.deepEqual([...stops.rows.keys()], ['a']);
});

test('an answer that a later one has overtaken does not take its place', async (t) => {
  const store = sharedRows();
  const { clock, stops } = await openProcess(t, store);
  const held = Promise.withResolvers<void>();
  store.held = held;
  const first = stops.refresh();
  store.held = null;
  store.commit(stop('a'));
  await clock.advance(sharedAgeMs * 2);
  assert.deepEqual([...stops.rows.keys()], ['a']);
  held.resolve();
  await first;
  assert.deepEqual([...stops.rows.keys()], ['a']);
});

test('a read that hangs does not keep the table from being read by another one, and few hang at a time', async (t) => {
  const store = sharedRows();
  const { clock, state, stops, told } = await openProcess(t, store);
  const held = Promise.withResolvers<void>();
  store.held = held;
  await clock.advance(sharedAgeMs * 10);
  assert.equal(store.reads, 1 + 3);
  assert.throws(() => stops.rows, { code: 'store-unavailable' });
  store.held = null;
  held.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(told.length, 1, 'answers that come too late are not told as the end of the trouble');
  store.commit(stop('a'));
  await eventually('it is read again', async () => {
    await clock.advance(sharedAgeMs / 3);
    return state.stale().length === 0 && stops.rows.has('a');
  });
  assert.deepEqual([...stops.rows.keys()], ['a']);
});

test('a call that meets a read whose answer comes too late waits for one that begins now', async (t) => {
  const store = sharedRows();
  const { clock, stops } = await openProcess(t, store);
  const held = Promise.withResolvers<void>();
  store.held = held;
  await clock.advance(sharedAgeMs * 10);
  const waiting = stops.current();
  store.held = null;
  store.commit(stop('a'));
  held.resolve();
  await waiting;
  assert.deepEqual([...stops.rows.keys()], ['a']);
});

test('a call whose reads answer too late asks again, and is refused when that takes too long', async (t) => {
  const store = sharedRows();
  const { clock, stops } = await openProcess(t, store);
  let late: number[] = [];
  const { read } = store;
  store.read = async () => {
    const rows = await read();
    clock.setAhead(late.shift() ?? 0);
    return rows;
  };
  clock.setAhead(sharedAgeMs * 60);
  late = [sharedAgeMs + 100, sharedAgeMs + 100];
  store.commit(stop('a'));
  await stops.current();
  assert.deepEqual([...stops.rows.keys()], ['a']);
  clock.setAhead(sharedAgeMs * 60);
  late = Array.from({ length: 20 }, () => sharedAgeMs + 100);
  await assert.rejects(async () => await stops.current(), { code: 'store-unavailable' });
  assert.ok(late.length >= 16, 'not for longer than a request can wait');
});

test('a process that stands still while it reads reads once more, and no oftener where the store is as slow', async (t) => {
  const store = sharedRows();
  const { clock, stops } = await openProcess(t, store);
  const { read } = store;
  let late: number[] = [];
  store.read = async () => {
    const rows = await read();
    clock.setAhead(late.shift() ?? 0);
    return rows;
  };
  clock.setAhead(sharedAgeMs * 60);
  late = [sharedAgeMs * 60];
  store.commit(stop('a'));
  await stops.current();
  assert.deepEqual([...stops.rows.keys()], ['a']);
  clock.setAhead(sharedAgeMs * 60);
  late = Array.from({ length: 4 }, () => sharedAgeMs * 60);
  await assert.rejects(async () => await stops.current(), { code: 'store-unavailable' });
  assert.equal(late.length, 2);
});

test('an entry is dropped when another process announces that it changed, and all of them when that may be missed', async () => {
  const hub = announcementHub();
  const values: Record<string, number> = { a: 1, b: 1 };
  const open = () => {
    const clock = testClock({ at: 0, stands: true });
    const log = { warn: () => undefined, error: () => undefined };
    const state = createInstanceState({ ownsStore: false, clock, announcements: hub.member(), log });
    const load = async (keys: readonly string[]) => keys.map((key) => values[key] ?? null);
    return state.entries('agentVersions', { load });
  };
  const [here, there] = [open(), open()];
  await there.readAll(['a', 'b']);
  values['a'] = 2;
  here.changed('a');
  await eventually('it is dropped there', () => there.known('a') === undefined);
  assert.equal(there.known('b'), 1, 'no other is dropped');
  assert.equal(await there.read('a'), 2);
  hub.cut();
  values['b'] = 2;
  here.changed('b');
  hub.mend();
  assert.deepEqual([there.known('a'), there.known('b')], [undefined, undefined]);
});
