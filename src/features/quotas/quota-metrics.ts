import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { LimitState } from './quotas.rules.ts';

/** What quotas refuse, and how often the store fails them. */
export const createQuotaMetrics = ({ metrics }: Telemetry) => {
  const rejections = metrics.counter('acp.quota.rejections', 'Runs that a quota refused.', '{run}', [
    'acp.quota.scope',
    'acp.quota.period',
    'acp.quota.metric',
  ]);
  const failures = metrics.counter(
    'acp.quota.store_failures',
    'Times that the store could not be asked, or told, what runs use.',
    '{failure}',
    [],
  );
  return {
    rejected: ({ rule, metric }: LimitState): void =>
      rejections.add(1, [rule.agentName === '' ? 'tenant' : 'agent', rule.period, metric]),
    storeFailed: (): void => failures.add(1, []),
  };
};

export type QuotaMetrics = ReturnType<typeof createQuotaMetrics>;
