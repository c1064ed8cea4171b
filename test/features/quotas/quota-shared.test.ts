import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { AcpError } from '../../../src/contract/errors.ts';
import { ConditionFailedError } from '../../../src/db/statement.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { orderlyCondensed } from '../../../src/features/quotas/quota-bookings.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachDurableStore, openForTwo, slowRead, storedRows } from '../../support/store.ts';
import { createTown, openSharedQuotas, type SharedQuotas } from './shared-world.ts';

const { signal } = new AbortController();
const request = { tenantId: 't', agentName: 'a', mayWait: true, agent: null, signal };
const now = { ...request, mayWait: false };
const callOf = (runId: string, inputTokens: number, outputTokens: number | null, spent = 0) => ({
  tenantId: 't',
  runId,
  root: { id: runId, agentName: 'a', day: null },
  spent: { tokens: spent, costMicros: 0 },
  inputTokens,
  outputTokens,
  prices: { input: null, output: null, cachedInput: null, source: 'Configuration' } as never,
  signal,
});
/** Of a root run that another process has opened. */
const opened = {
  status: 'Running',
  ...{ agentVersion: null, modelProvider: null, modelId: null, isStreaming: false, jobId: null },
  ...{ sessionId: null, userId: null, ownerId: null, labels: null, parentRunId: null, rootRunId: null },
  ...{ continuedFromRunId: null, depth: 0, createdAt: 1, startedAt: 1, input: null },
} as const;
const holdsOf = async (storage: Parameters<typeof storedRows>[0]) => storedRows(storage, 'quota holds');

/** Starts a run; false: its place was refused. */
const start = async (quotas: SharedQuotas): Promise<boolean> => {
  try {
    const place = await quotas.admission.admit(request);
    assert.ok(place !== null, 'a limit holds');
    await quotas.record(place.runId);
    place.settled();
    return true;
  } catch (error) {
    if (error instanceof AcpError && error.code === 'quota-exceeded') return false;
    throw error;
  }
};

/** Starts runs until it is refused; how many there were. */
const startAll = async (quotas: SharedQuotas, clients: number): Promise<number> => {
  let started = 0;
  const client = async (): Promise<void> => {
    if (!(await start(quotas))) return;
    started += 1;
    await client();
  };
  await Promise.all(Array.from({ length: clients }, client));
  return started;
};

forEachDurableStore('QUOTA-12 two processes admit exactly as many runs as one would', async (t, kind) => {
  const storages = await openForTwo(t, kind);
  const town = createTown();
  const [one, two] = storages.map((storage, index) =>
    openSharedQuotas(storage, { limits: { maxRuns: 101 }, holder: `p${index}`, town }),
  ) as [SharedQuotas, SharedQuotas];
  assert.deepEqual(await Promise.all([start(one), start(two)]), [true, true]);
  const [first, second] = await Promise.all([startAll(one, 32), startAll(two, 32)]);
  assert.equal(first + second, 99);
  assert.equal((await one.used())?.runs, 101);
  await eventually('no hold is left', async () => (await holdsOf(storages[0])).length === 0);
});

/** Between what it reads and what it writes a decision takes long enough for any other to come in between. */
const dawdle = (storage: RootStorage): void => {
  const exchange = storage.exchange.bind(storage);
  storage.exchange = async (statements) => {
    const [lock, reading, holds] = statements;
    if (statements.length !== 3 || lock === undefined || reading === undefined || holds === undefined)
      return exchange(statements);
    const answers = await exchange([lock, reading, slowRead, holds]);
    return answers.filter((_, index) => index !== 2);
  };
};

forEachDurableStore('QUOTA-12 of two processes that ask for a last place at once one gets it', async (t, kind) => {
  const storages = await openForTwo(t, kind);
  for (const storage of storages) dawdle(storage);
  const limits = { maxRuns: 1 };
  const processes = storages.map((storage, index) => openSharedQuotas(storage, { limits, holder: `p${index}` }));
  const tenants = Array.from({ length: 6 }, (_, index) => `tenant-${index}`);
  const gone = new AbortController();
  const placesOf = (tenantId: string) =>
    processes.map(async ({ admission }) => {
      const place = await admission.admit({ ...request, tenantId, signal: gone.signal });
      return place === null ? 0 : 1;
    });
  const asked = tenants.map(placesOf);
  await Promise.all(asked.map((ofTenant) => Promise.race(ofTenant)));
  gone.abort();
  const places = await Promise.all(asked.map((ofTenant) => Promise.allSettled(ofTenant)));
  const given = places.map((ofTenant) => ofTenant.filter(({ status }) => status === 'fulfilled').length);
  assert.deepEqual(
    given,
    tenants.map(() => 1),
  );
});

forEachDurableStore(
  'QUOTA-12 a place that another process has is no place, and is heard of when it goes',
  async (t, kind) => {
    const [a, b] = await openForTwo(t, kind);
    const town = createTown();
    const one = openSharedQuotas(a, { limits: { maxRuns: 1 }, holder: 'p1', town, clock: testClock({ stands: true }) });
    const two = openSharedQuotas(b, { limits: { maxRuns: 1 }, holder: 'p2', town, clock: testClock({ stands: true }) });
    two.keeping.start();
    const place = await one.admission.admit(request);
    assert.equal((await holdsOf(b)).length, 1);
    const waiting = two.admission.admit(request);
    // Its clock stands, so that it is the announcement that has it look again.
    place?.settled();
    assert.equal((await waiting)?.isChecked, true);
    await two.keeping.close();
  },
);

forEachDurableStore('QUOTA-12 polling alone finds a place that nobody announced', async (t, kind) => {
  const [a, b] = await openForTwo(t, kind);
  const one = openSharedQuotas(a, { limits: { maxRuns: 1 }, holder: 'p1' });
  const two = openSharedQuotas(b, { limits: { maxRuns: 1 }, holder: 'p2' });
  const place = await one.admission.admit(request);
  const waiting = two.admission.admit(request);
  place?.settled();
  assert.equal((await waiting)?.isChecked, true);
});

forEachDurableStore(
  'RUN-9 QUOTA-12 reservations of a process without a heartbeat are free after 14 s, and it starts nothing with them',
  async (t, kind) => {
    const [a, b] = await openForTwo(t, kind);
    const clock = testClock({ stands: true });
    const one = openSharedQuotas(a, { limits: { maxRuns: 1 }, holder: 'p1', clock });
    const two = openSharedQuotas(b, { limits: { maxRuns: 1 }, holder: 'p2', clock });
    const place = await one.admission.admit(request);
    two.keeping.start();
    await clock.advance(10_000);
    assert.equal((await holdsOf(b)).length, 1, 'it may be alive');
    await clock.advance(4000);
    assert.equal((await holdsOf(b)).length, 0);
    assert.match(two.warnings[0] ?? '', /no sign of life/);
    const second = await two.admission.admit(now);
    await two.record(second?.runId ?? '');
    second?.settled();
    // It stood still, and goes on with what it had.
    await assert.rejects(one.record(place?.runId ?? ''), ConditionFailedError);
    place?.settled();
    assert.equal((await two.used())?.runs, 1);
    assert.equal((await holdsOf(b)).length, 0);
    await two.keeping.close();
  },
);

forEachDurableStore(
  'RUN-9 QUOTA-12 a process writes a heartbeat before it reserves, unless its last is new',
  async (t, kind) => {
    const [a, b] = await openForTwo(t, kind);
    const clock = testClock({ stands: true });
    // Its timer does not run, as in a process that is busy.
    const one = openSharedQuotas(a, { limits: { maxRuns: 1 }, holder: 'p1', clock });
    const two = openSharedQuotas(b, { limits: { maxRuns: 1 }, holder: 'p2', clock });
    (await one.admission.admit(request))?.settled();
    two.keeping.start();
    await clock.advance(6000);
    const later = await one.admission.admit(request);
    await clock.advance(8000);
    assert.equal((await holdsOf(b)).length, 1, 'of the heartbeat before it, 14 s have passed');
    await one.record(later?.runId ?? '');
    later?.settled();
    assert.equal((await two.used())?.runs, 1);
    await two.keeping.close();
  },
);

forEachDurableStore(
  'QUOTA-13 strict: calls of two processes use exactly what there is, and never more',
  async (t, kind) => {
    const storages = await openForTwo(t, kind);
    const town = createTown();
    const limits = { maxTokens: 20_000 };
    const processes = storages.map((storage, index) =>
      openSharedQuotas(storage, { limits, holder: `p${index}`, town }),
    );
    let inProgress = 0;
    let used = 0;
    const client = async (quotas: SharedQuotas, name: string): Promise<void> => {
      for (let count = 0; ; count += 1) {
        const runId = `${name}-${count}`;
        await quotas.record(runId);
        const allowance = await quotas.allowances.allow(callOf(runId, 20, 70)).catch(() => null);
        if (allowance === null) return;
        const most = 20 + (allowance.outputTokens ?? 0);
        inProgress += most;
        assert.ok(used + inProgress <= limits.maxTokens, `${used} + ${inProgress}`);
        await turn();
        const tokens = 20 + Math.floor((allowance.outputTokens ?? 0) / (1 + (count % 3)));
        inProgress -= most;
        used += tokens;
        allowance.settle({ tokens, costMicros: 0 });
        await quotas.end(runId, tokens);
        quotas.holds.release(runId);
      }
    };
    await Promise.all(
      processes.flatMap((quotas, at) => Array.from({ length: 16 }, (_, i) => client(quotas, `r${at}-${i}`))),
    );
    const counted = (await (processes[0] as SharedQuotas).used())?.tokens ?? 0;
    assert.equal(counted, used);
    assert.ok(counted <= limits.maxTokens && counted > limits.maxTokens - 21, `${counted}`);
  },
);

forEachDurableStore('QUOTA-11 whoever books in several counters locks them in one order', async (t, kind) => {
  const [storage] = await openForTwo(t, kind);
  const { counters } = openSharedQuotas(storage, { limits: {}, holder: 'p1' });
  const bookingOf = (tenantId: string, agentName: string, day: string) =>
    counters.booked({ id: 'r', tenantId, agentName, day, counts: true }, { tokens: 2, costMicros: 0 });
  const asked = [
    ['b', 'y', '2026-01-02'],
    ['a', 'x', '2026-01-01'],
    ['a', 'z', '2026-01-02'],
    ['b', 'x', '2026-01-02'],
  ] as const;
  const other = { sql: 'select 1', parameters: [] };
  const written = (order: typeof asked | readonly (typeof asked)[number][]) =>
    orderlyCondensed(order.flatMap(([tenantId, agentName, day]) => [...bookingOf(tenantId, agentName, day), other]));
  const [forth, back] = [written(asked), written([...asked].reverse())];
  const [last] = forth.slice(-1);
  assert.deepEqual(
    last?.parameters.filter((value) => typeof value === 'string'),
    back.at(-1)?.parameters.filter((value) => typeof value === 'string'),
  );
  assert.equal(forth.length, 5, 'all bookings are one statement, the last');
  await storage.batch.write([last ?? other]);
  const rows = await storedRows(storage, 'quota use');
  assert.equal(rows.length, 6 + 7);
  const monthly = rows.find(
    (row) => row['tenant_id'] === 'a' && row['agent_name'] === '' && row['period'] === 'Monthly',
  );
  assert.deepEqual([monthly?.['runs'], monthly?.['tokens']], [2, 4]);
});

forEachDurableStore(
  'QUOTA-11 processes that settle runs of each other crosswise do not wait for each other',
  async (t, kind) => {
    const connections = await openForTwo(t, kind);
    const [storage] = connections;
    const day = '2026-01-01';
    const tenants = ['a', 'b'] as const;
    const root = (tenantId: string, opener: number) => ({ id: `${tenantId}-${opener}`, tenantId, agentName: 'x', day });
    const opening = openSharedQuotas(storage, { limits: {}, holder: 'p', clock: testClock({ at: Date.parse(day) }) });
    const journal = storage.stores(createRunJournal(null, opening.counters));
    for (const tenantId of tenants)
      for (const opener of [0, 1]) {
        const { id, agentName } = root(tenantId, opener);
        await storage.batch.write(journal.opened({ ...opened, id, tenantId, agentName }));
      }
    const use = { tokens: 1, costMicros: 0 };
    const rounds = 60;
    await Promise.all(
      connections.map(async (connection, self) => {
        const { counters } = openSharedQuotas(connection, { limits: {}, holder: `p${self}` });
        const [own, other] = self === 0 ? tenants : ([...tenants].reverse() as ['b', 'a']);
        await connection.batch.write(counters.opened({ ...root(own, self), counts: true }));
        const child = (tenantId: string, opener: number) =>
          counters.closed({ id: 'child', tenantId, rootRunId: root(tenantId, opener).id, use, tree: null });
        for (let round = 0; round < rounds; round += 1)
          // What this process has opened, and what the other one has; without an order each would hold what the other needs.
          await connection.batch.write([...child(own, self), ...child(other, 1 - self)]);
      }),
    );
    const rows = await storedRows(storage, 'quota use');
    assert.deepEqual(
      rows.map((row) => [row['tenant_id'], row['agent_name'], row['period'], row['tokens']]).sort(),
      tenants.flatMap((tenant) =>
        ['', 'x'].flatMap((agent) => ['Daily', 'Monthly'].map((period) => [tenant, agent, period, rounds * 2])),
      ),
    );
    const { counters } = openSharedQuotas(storage, { limits: {}, holder: 'p3' });
    const settled = (order: readonly string[]) =>
      orderlyCondensed(
        order.flatMap((tenantId) =>
          counters.closed({ id: 'child', tenantId, rootRunId: `${tenantId}-0`, use, tree: null }),
        ),
      ).flatMap(({ parameters }) => parameters.find((value) => value === 'a' || value === 'b') ?? []);
    assert.deepEqual([settled(['b', 'a']), settled(['a', 'b'])], [tenants, tenants]);
  },
);
