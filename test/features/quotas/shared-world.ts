import type { RootStorage } from '../../../src/db/storage.ts';
import { createPeriodClock } from '../../../src/features/quotas/period-clock.ts';
import { createQuotaAdmission } from '../../../src/features/quotas/quota-admission.ts';
import { createQuotaAllowances } from '../../../src/features/quotas/quota-allowances.ts';
import { createRunCounters } from '../../../src/features/quotas/quota-counters.store.ts';
import { sharedKeeping } from '../../../src/features/quotas/quota-keeping.ts';
import { createQuotaStore, type QuotaRule, type QuotaRules } from '../../../src/features/quotas/quotas.store.ts';
import { type TestClock, testClock } from '../../support/clock.ts';

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

/** What processes of a store tell each other, in one process. */
export const createTown = () => {
  const listeners = new Set<{ readonly from: string; heard(key: string): void }>();
  return (from: string) => ({
    announce(_topic: string, key: string) {
      for (const listener of listeners) if (listener.from !== from) listener.heard(key);
    },
    listen(_topic: string, { heard }: { heard(key: string): void }) {
      const listener = { from, heard };
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  });
};

export interface SharedSetup {
  readonly limits: Partial<QuotaRule>;
  readonly holder: string;
  readonly clock?: TestClock;
  readonly town?: ReturnType<typeof createTown>;
}

/** The quotas of one of several processes on a store: their admission and their allowances. */
export const openSharedQuotas = (storage: RootStorage, { limits, holder, clock = testClock(), town }: SharedSetup) => {
  const periods = createPeriodClock('UTC', clock.now);
  const own = [{ ...rule, ...limits }];
  const rules = { known: () => own, read: () => own, readAll: () => [own], changed: () => undefined } as QuotaRules;
  const store = storage.stores(createQuotaStore(nothing));
  const warnings: string[] = [];
  let lastId = 0;
  const keeping = sharedKeeping({
    ...{ storage, batch: storage.batch, store, rules, periods, unwritten: nothing, clock, strict: true, holder },
    turns: { turn: async () => null },
    wake(tenantId) {
      admission.wake(tenantId);
      allowances.wake(tenantId);
    },
    newId() {
      lastId += 1;
      return `${holder}-${lastId}`;
    },
    storeClock: clock,
    announcements: (town ?? createTown())(holder),
    log: { warn: (_fields, message) => void warnings.push(message ?? '') },
  });
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
  const { holds } = keeping;
  const counters = storage.stores(createRunCounters(periods, notices, holds, clock.now, storage.batch, true));
  const openedRun = (id: string) => ({ id, tenantId: 't', agentName: 'a', day: counters.day(id), counts: true });
  return {
    ...{ admission, allowances, keeping, holds, counters, periods, warnings, clock },
    used: async () => (await store.usage('t', periods.current(), [''])).find(({ period }) => period === 'Daily'),
    /** Records that the run exists, as its first unit does. */
    record: (id: string) => storage.batch.write(counters.opened(openedRun(id))),
    /** Records its end, with what it has used. */
    end: (id: string, tokens: number) => {
      const use = { tokens, costMicros: 0 };
      return storage.batch.write(counters.closed({ id, tenantId: 't', rootRunId: null, use, tree: use }));
    },
  };
};

export type SharedQuotas = ReturnType<typeof openSharedQuotas>;
