import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { ConditionFailedError } from '../../../src/db/statement.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { createPeriodClock } from '../../../src/features/quotas/period-clock.ts';
import { createQuotaAdmission } from '../../../src/features/quotas/quota-admission.ts';
import { createQuotaAllowances } from '../../../src/features/quotas/quota-allowances.ts';
import { createRunCounters } from '../../../src/features/quotas/quota-counters.store.ts';
import { ownedKeeping } from '../../../src/features/quotas/quota-keeping.ts';
import {
  createQuotaStore,
  type QuotaRule,
  type QuotaRules,
  type QuotaStore,
} from '../../../src/features/quotas/quotas.store.ts';
import { testClock } from '../../support/clock.ts';
import { forEachStore, openTestStorage, ownedStores, storedRows } from '../../support/store.ts';

const rule: QuotaRule = {
  id: 'q',
  tenantId: 't',
  agentName: '',
  period: 'Daily',
  maxRuns: null,
  maxTokens: null,
  maxCostMicros: null,
  enabled: true,
  labels: null,
  createdAt: 0,
  updatedAt: 0,
};
const nothing = { added: <T>(rows: T) => rows, openAdded: <T>(rows: T) => rows };
const priceless = { currency: null, pricesOf: () => ({ input: null, output: null }) } as never;
const nothingUsed = { tokens: 0, costMicros: 0 };
const signal = new AbortController().signal;
/** Some turns of the event loop: what needs no time has happened by then. */
const stillStanding = async (): Promise<void> => {
  for (let turns = 0; turns < 20; turns += 1) await turn();
};

/** Admission and allowances of one tenant on a store of its own, with a clock that stands. */
const openQuotas = (
  storage: RootStorage,
  limits: Partial<QuotaRule>,
  watched: (store: QuotaStore) => QuotaStore = (store) => store,
) => {
  const clock = testClock({ stands: true });
  const periods = createPeriodClock('UTC', clock.now);
  const own = [{ ...rule, ...limits }];
  const rules = { known: () => own, read: () => own, readAll: () => [own], changed: () => undefined } as QuotaRules;
  const store = watched(storage.stores(createQuotaStore(nothing)));
  let lastId = 0;
  const keeping = ownedKeeping({
    ...{ storage, batch: storage.batch, store, rules, periods, unwritten: nothing, clock, strict: true },
    turns: { turn: async () => null },
    wake(tenantId) {
      admission.wake(tenantId);
      allowances.wake(tenantId);
    },
    newId() {
      lastId += 1;
      return `run-${lastId}`;
    },
  });
  const { holds } = keeping;
  const admission = createQuotaAdmission({
    ...{ rules, places: keeping.places, periods, clock, prices: priceless, allowOnStoreFailure: false },
    metrics: { rejected: () => undefined, storeFailed: () => undefined },
    lifecycle: { draining: false },
    log: { error: () => undefined },
  });
  const allowances = createQuotaAllowances({
    ...{ rules, rooms: keeping.rooms, clock },
    countedRoot: async (tenantId, { agentName }) => ({ tenantId, agentName, day: periods.current().day }),
  });
  const notices = { crossed: () => [], crossedBy: () => [] } as never;
  const counters = storage.stores(createRunCounters(periods, notices, holds, clock.now, storage.batch));
  return { admission, allowances, keeping, holds, counters, periods };
};

const callOf = (runId: string, inputTokens: number, outputTokens: number | null) => ({
  tenantId: 't',
  runId,
  root: { id: runId, agentName: 'a', day: null },
  spent: nothingUsed,
  inputTokens,
  outputTokens,
  prices: { input: null, output: null, cachedInput: null, source: 'Configuration' } as never,
  signal,
});

const request = { tenantId: 't', agentName: 'a', mayWait: true, agent: null, signal };

forEachStore('QUOTA-12 the first who waits gets the place, and the next one the next', async (t, kind) => {
  const { admission } = openQuotas(await openTestStorage(t, kind), { maxRuns: 1 });
  const first = await admission.admit(request);
  const served: string[] = [];
  const asked = ['second', 'third'].map(async (name) => {
    const place = await admission.admit(request);
    served.push(name);
    return place;
  });
  await stillStanding();
  assert.deepEqual(served, []);
  first?.settled();
  const second = await asked[0];
  await stillStanding();
  assert.deepEqual(served, ['second']);
  // Whoever says it twice frees no second place.
  first?.settled();
  await stillStanding();
  assert.deepEqual(served, ['second']);
  second?.settled();
  await asked[1];
});

forEachStore('QUOTA-12 a caller that goes away leaves the line, and its place to the next', async (t, kind) => {
  const { admission } = openQuotas(await openTestStorage(t, kind), { maxRuns: 1 });
  const first = await admission.admit(request);
  const gone = new AbortController();
  const second = assert.rejects(Promise.resolve(admission.admit({ ...request, signal: gone.signal })), {
    code: 'run-canceled',
  });
  const third = admission.admit(request);
  gone.abort();
  await second;
  first?.settled();
  assert.equal((await third)?.isChecked, true);
});

forEachStore('QUOTA-13 strict: a small call does not overtake a large one that waits', async (t, kind) => {
  const { allowances } = openQuotas(await openTestStorage(t, kind), { maxTokens: 1000 });
  const first = await allowances.allow(callOf('first', 400, 500));
  const served: string[] = [];
  const asked = (['large', 'small'] as const).map(async (name) => {
    const allowance = await allowances.allow(callOf(name, name === 'large' ? 700 : 20, 10));
    served.push(name);
    return allowance;
  });
  await stillStanding();
  // There is room for the small one, but it came later.
  assert.deepEqual(served, []);
  first.settle({ tokens: 100, costMicros: 0 });
  await Promise.all(asked);
  assert.deepEqual(served, ['large', 'small']);
});

forEachStore(
  'QUOTA-12 a hold goes in the transaction that records its run, and stays when that fails',
  async (t, kind) => {
    const storage = await openTestStorage(t, kind);
    const { admission, counters, periods } = openQuotas(storage, { maxRuns: 5 });
    const place = await admission.admit(request);
    await stillStanding();
    const usage = storage.stores(createQuotaStore(nothing));
    const stored = async () => ({
      holds: (await storedRows(storage, 'quota holds')).length,
      runs: (await usage.usage('t', periods.current(), null))
        .filter(({ period }) => period === 'Daily')
        .map(({ runs }) => runs),
    });
    assert.deepEqual(await stored(), { holds: 1, runs: [] });
    const run = { id: place?.runId ?? '', tenantId: 't', agentName: 'a', day: periods.current().day, counts: true };
    const gone = storage.stores(jobStore).held({ id: 'none', leaseOwner: 'nobody', attempt: 1 });
    await assert.rejects(storage.batch.write([...counters.opened(run), gone]), ConditionFailedError);
    assert.deepEqual(await stored(), { holds: 1, runs: [] });
    // Nothing else was asked for: the record alone takes the hold away.
    await storage.batch.write(counters.opened(run));
    assert.deepEqual(await stored(), { holds: 0, runs: [1, 1] });
    place?.settled();
  },
);

forEachStore(
  'QUOTA-12 counters are read again where a hold of the tenant went meanwhile, and only then',
  async (t, kind) => {
    const storage = await openTestStorage(t, kind);
    let reads = 0;
    let goes: (() => void)[] = [];
    const { admission, keeping, holds } = openQuotas(storage, { maxTokens: 1000 }, (store) => ({
      ...store,
      recentUsage(...asked) {
        reads += 1;
        // More often than anybody would wait for, should each of these count.
        if (reads < 50) goes.shift()?.();
        return store.recentUsage(...asked);
      },
    }));
    const leave = (tenantId: string) => () => {
      const runId = `${tenantId}-${reads}`;
      keeping.rooms.free({ runId, spent: nothingUsed }, { tenantId, agentName: 'a', day: '2026-01-01' });
      holds.release(runId);
    };
    const admit = async () =>
      (await admission.admit({ tenantId: 't', agentName: 'a', mayWait: false, signal }))?.settled();
    goes = Array.from({ length: 50 }, () => leave('another'));
    await admit();
    assert.equal(reads, 1, 'what goes of another tenant is nothing to this one');
    goes = [leave('t')];
    await admit();
    assert.equal(reads, 3, 'of its own it is looked at again, once');
  },
);

forEachStore('a hold that is recorded in the turn in which it was taken never is a row', async (t, kind) => {
  const storage = await openTestStorage(t, kind);
  const { admission, counters, periods } = openQuotas(storage, { maxRuns: 5 });
  let inserts = 0;
  const { enqueue } = storage.batch;
  storage.batch.enqueue = (unit) => {
    inserts += 1;
    enqueue(unit);
  };
  const place = await admission.admit(request);
  const run = { id: place?.runId ?? '', tenantId: 't', agentName: 'a', day: periods.current().day, counts: true };
  await storage.batch.write(counters.opened(run));
  place?.settled();
  await stillStanding();
  assert.equal(inserts, 0);
});

forEachStore(
  'what a dead owner of the store left is explained by the next one',
  async (t, kind) => {
    const storage = await openTestStorage(t, kind);
    const before = openQuotas(storage, { maxTokens: 1000 });
    await before.admission.admit(request);
    const call = await before.allowances.allow(callOf('closed', 100, 100));
    call.settle({ tokens: 50, costMicros: 0 });
    await stillStanding();
    assert.equal((await storedRows(storage, 'quota holds')).length, 2);
    const after = openQuotas(storage, { maxTokens: 1000 });
    // Neither run is in the store: the one never came, the other is closed.
    await after.keeping.recover();
    assert.deepEqual(await storedRows(storage, 'quota holds'), []);
    assert.equal((await after.allowances.allow(callOf('next', 500, 500))).isCut, false);
  },
  ownedStores,
);
