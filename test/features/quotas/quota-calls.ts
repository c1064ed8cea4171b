import type { Client } from '../../../src/client/client.ts';
import type { QuotaDefinition, QuotaSaveRequest } from '../../../src/features/quotas/quotas.schema.ts';
import type { AppSetup } from '../../support/app.ts';

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

export const verify = async (client: Client) => (await client.quotas.verify({})).body;
