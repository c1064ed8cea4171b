import type { Client } from '../../../src/client/client.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { createPeriodClock } from '../../../src/features/quotas/period-clock.ts';
import { createRunCounters } from '../../../src/features/quotas/quota-counters.store.ts';
import type { QuotaDefinition, QuotaSaveRequest } from '../../../src/features/quotas/quotas.schema.ts';
import type { AppSetup } from '../../support/app.ts';
import { calmZone } from '../../support/calm-zone.ts';

/** Every run of `helper` uses 30 tokens, which cost 0.00004. */
export const priced: AppSetup = {
  script: [{ reply: { text: 'Yes.', usage: { inputTokens: 20, outputTokens: 10 } } }],
  service: { Pricing: { Currency: 'EUR', demo: { 'demo-1': { Input: 1, Output: 2 } } } },
  agents: [{ name: 'helper' }, { name: 'other' }],
};

export const saveQuota = async (client: Client, body: QuotaSaveRequest): Promise<QuotaDefinition> =>
  (await client.quotas.save({ body })).body;

export const listQuotas = async (client: Client) => (await client.quotas.list({})).body;

export const usageOf = async (client: Client, query: { agentName?: string; period?: 'Daily' | 'Monthly' } = {}) =>
  (await client.quotas.usage({ query })).body;

/** The daily counter of a scope; undefined: nothing was counted. */
export const daily = async (client: Client, agentName = '') =>
  (await usageOf(client, { agentName, period: 'Daily' })).usage[0];

/** Another process counts for `agentName` what no run has used. */
export const bookElsewhere = async (
  storage: RootStorage,
  now: () => number,
  counts: boolean,
  tokens: number,
  agentName = 'helper',
  zone = calmZone(now()),
): Promise<void> => {
  const nothing = () => [];
  const notices = { crossed: nothing, crossedBy: nothing, foretold: nothing, ofRun: async () => [] };
  const counters = storage.stores(
    createRunCounters(
      createPeriodClock(zone, now),
      { ...notices, waiting: async () => [], announced: async () => new Set<string>() },
      { admitted: nothing, settled: nothing, dayOf: () => null },
      now,
      storage.batch,
    ),
  );
  const root = { id: 'nobody', tenantId: 'default', agentName, day: counters.day('nobody'), counts };
  await storage.write(counters.booked(root, { tokens, costMicros: 0 }));
};

export const verify = async (client: Client) => (await client.quotas.verify({})).body;
