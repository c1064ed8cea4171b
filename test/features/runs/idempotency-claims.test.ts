import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import type { IdempotencyClaim } from '../../../src/features/idempotency/idempotency.store.ts';
import { testClock } from '../../support/clock.ts';
import { forEachDurableStore, openForTwo, type TestStore } from '../../support/store.ts';
import { idleKeys } from './other-process.ts';

const markMs = 60_000;

/** Two processes on one store that renew no mark by themselves, and the time of the store. */
const openProcesses = async (t: TestContext, store: TestStore) => {
  const storages = await openForTwo(t, store);
  const clock = testClock({ at: 1_000_000, stands: true });
  const keys = storages.map((storage) => idleKeys(storage, clock));
  t.after(() => {
    for (const each of keys) each.close();
  });
  const [one, two] = keys as [(typeof keys)[0], (typeof keys)[0]];
  return { one, two, clock };
};

const answer = (body: string) => ({ status: 200, headers: {}, body });

const outcome = (claim: Promise<IdempotencyClaim>): Promise<string> =>
  claim.then(
    (of) => (of.kind === 'first' ? 'first' : String(of.answer.body)),
    (error: unknown) => (error instanceof AcpError ? error.code : Promise.reject(error)),
  );

const isFirst = async (claim: Promise<IdempotencyClaim>) => {
  const settled = await claim;
  if (settled.kind !== 'first') return assert.fail('the key is in use');
  return settled;
};

forEachDurableStore('RUN-18 of two processes that get one key at once, one executes the request', async (t, store) => {
  const { one, two } = await openProcesses(t, store);
  for (let round = 0; round < 20; round += 1) {
    const claims = [one, two].map((keys) => outcome(keys.claim('t', null, `k${round}`, 'f')));
    assert.deepEqual((await Promise.all(claims)).toSorted(), ['first', 'idempotency-in-progress']);
  }
});

forEachDurableStore('RUN-18 an answer that one process has stored is given again by the other', async (t, store) => {
  const { one, two } = await openProcesses(t, store);
  const claim = await isFirst(one.claim('t', null, 'k', 'f'));
  await claim.complete(answer('first'));
  assert.equal(await outcome(two.claim('t', null, 'k', 'f')), 'first');
  assert.equal(await outcome(two.claim('t', null, 'k', 'another')), 'idempotency-key-reused');
});

forEachDurableStore('RUN-19 of two processes that find a mark lapsed, one executes the request', async (t, store) => {
  const { one, two, clock } = await openProcesses(t, store);
  for (let round = 0; round < 20; round += 1) {
    await isFirst(one.claim('t', null, `k${round}`, 'f'));
    await clock.jump(markMs);
    const claims = [one, two].map((keys) => outcome(keys.claim('t', null, `k${round}`, 'f')));
    assert.deepEqual((await Promise.all(claims)).toSorted(), ['first', 'idempotency-in-progress']);
  }
});

for (const end of ['complete', 'abandon'] as const)
  forEachDurableStore(
    `RUN-19 a process whose mark has lapsed does not ${end} that of the one which took the key`,
    async (t, store) => {
      const { one, two, clock } = await openProcesses(t, store);
      const late = await isFirst(one.claim('t', null, 'k', 'f'));
      await clock.jump(markMs - 1);
      assert.equal(await outcome(two.claim('t', null, 'k', 'f')), 'idempotency-in-progress', 'not before its time');
      await clock.jump(1);
      const next = await isFirst(two.claim('t', null, 'k', 'f'));
      if (end === 'complete') await late.complete(answer('late'));
      else await late.abandon();
      assert.equal(await outcome(one.claim('t', null, 'k', 'f')), 'idempotency-in-progress');
      await next.complete(answer('next'));
      assert.equal(await outcome(one.claim('t', null, 'k', 'f')), 'next');
      await late.abandon();
      assert.equal(await outcome(one.claim('t', null, 'k', 'f')), 'next', 'nor after its end');
    },
  );
