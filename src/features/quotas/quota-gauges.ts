import type { Logger } from '../../core/logger.ts';
import { storeValues } from '../../core/telemetry/store-values.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { PeriodClock } from './period-clock.ts';
import { shownAmount } from './quotas.rules.ts';
import type { QuotaMetric } from './quotas.schema.ts';
import type { LimitedUse, QuotaStore } from './quotas.store.ts';

export interface QuotaGaugeDeps {
  readonly telemetry: Telemetry;
  readonly store: Pick<QuotaStore, 'limitedUse'>;
  readonly clock: PeriodClock;
  readonly everyMs: number;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn'>;
}

// Each rule has up to three limits, and an instrument up to 2000 series.
const maxRules = 600;

const attributes = ['acp.tenant.id', 'acp.quota.scope', 'gen_ai.agent.name', 'acp.quota.period', 'acp.quota.metric'];

const limitsOf = ({ rule, used }: LimitedUse): readonly [QuotaMetric, number | null, number][] => [
  ['Runs', rule.maxRuns, used.runs],
  ['Tokens', rule.maxTokens, used.tokens],
  ['Cost', rule.maxCostMicros, used.costMicros],
];

/** Limits of the enabled rules of all tenants beside what their current period has counted. Cost is in the currency. */
export const observeQuotas = ({ telemetry, store, clock, ...options }: QuotaGaugeDeps): void => {
  const { metrics } = telemetry;
  const rows = storeValues(metrics, options, () => store.limitedUse(clock.current(), maxRules));
  const points = (pick: (limit: number, used: number) => number) => () =>
    rows().flatMap((row) =>
      limitsOf(row).flatMap(([metric, limit, used]) => {
        if (limit === null) return [];
        const { tenantId, agentName, period } = row.rule;
        const scope = agentName === '' ? 'tenant' : 'agent';
        const values = [tenantId, scope, agentName === '' ? null : agentName, period, metric];
        return [{ value: shownAmount(metric, pick(limit, used)), values }];
      }),
    );
  const gauge = (name: string, description: string, pick: (limit: number, used: number) => number): void =>
    metrics.gauge(name, description, '1', attributes, points(pick));
  gauge('acp.quota.usage', 'What the current period of a quota has counted.', (_limit, used) => used);
  gauge('acp.quota.limit', 'What a quota allows in its period.', (limit) => limit);
};
