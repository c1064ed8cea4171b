import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { LazyUnit } from '../../src/db/batched-writes.ts';
import { CommitLanes } from '../../src/db/commit-lanes.ts';

const unit = (): LazyUnit => ({
  collect: () => [{ sql: 'insert', parameters: [] }],
  committed: () => undefined,
  failed: (error) => assert.fail(String(error)),
});

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Lanes on a clock that stands still until it is moved. */
const started = (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const flights: { readonly units: number; readonly end: () => void }[] = [];
  const lanes = new CommitLanes({
    most: 4,
    commit: (units) =>
      new Promise((resolve) =>
        flights.push({ units: units.length, end: () => resolve(units.map(() => ({ ok: true }))) }),
      ),
    hasten: () => undefined,
  });
  return {
    flights,
    async enqueue(): Promise<void> {
      lanes.enqueue(unit());
      await turns(6);
    },
    /** `meanwhile`: before this process has looked around. */
    async pass(ms: number, meanwhile: () => void = () => undefined): Promise<void> {
      now += ms;
      t.mock.timers.tick(ms);
      meanwhile();
      await turns(6);
    },
    async commitIn(ms: number): Promise<void> {
      now += ms;
      flights.at(-1)?.end();
      await turns(6);
    },
  };
};

test('what comes while a commit is under way waits for it, and goes together; a commit that stands still gets another one beside it', async (t) => {
  const { flights, enqueue, pass } = started(t);
  await enqueue();
  await enqueue();
  await enqueue();
  assert.deepEqual(
    flights.map(({ units }) => units),
    [1],
  );
  await pass(24);
  assert.deepEqual(
    flights.map(({ units }) => units),
    [1],
  );
  await pass(1);
  assert.deepEqual(
    flights.map(({ units }) => units),
    [1, 2],
  );
});

test('where every commit takes long, further ones begin only after a multiple of that, and after 100 ms at the latest', async (t) => {
  const { flights, enqueue, pass, commitIn } = started(t);
  const after = async (took: number): Promise<number> => {
    for (let count = 0; count < 40; count += 1) {
      await enqueue();
      await commitIn(took);
    }
    await enqueue();
    const before = flights.length;
    await enqueue();
    let waited = 0;
    for (; flights.length === before; waited += 1) await pass(1);
    for (const { end } of flights) end();
    await turns(6);
    return waited;
  };
  assert.equal(await after(3), 25);
  const long = await after(15);
  assert.ok(long > 55 && long <= 61, `${long} ms after commits of 15 ms`);
  assert.equal(await after(60), 100);
});

test('an answer that came while this process had no time opens no further lane', async (t) => {
  const { flights, enqueue, pass } = started(t);
  await enqueue();
  await enqueue();
  await pass(500, () => {
    assert.equal(flights.length, 1, 'nothing is begun before what has come is read');
    flights[0]?.end();
  });
  assert.equal(flights.length, 2);
});
