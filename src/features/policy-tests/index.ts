import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Storage } from '../../db/storage.ts';
import type { ToolRegistry } from '../../engine/tools/index.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import { approvalRuleStore } from '../approvals/index.ts';
import type { SessionAccess } from '../sessions/index.ts';
import { historyStore } from './history.store.ts';
import { policyTestService } from './policy-tests.service.ts';

export interface PolicyTestsDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly authorization: RunAuthorization;
  readonly owners: SessionAccess;
  readonly providers: Pick<ModelProviders, 'list'>;
  readonly tools: Pick<ToolRegistry, 'get'>;
  readonly now: () => number;
}

/** What guards, approval rules, quotas and prices would have done to recorded runs. */
export const policyTestsFeature = ({ config, storage, ...deps }: PolicyTestsDeps) => {
  const { Quotas: quotas, Pricing: pricing } = config.Service;
  return {
    handlers: policyTestService({
      ...deps,
      store: storage.stores(historyStore),
      rules: storage.stores(approvalRuleStore),
      timeZone: quotas.TimeZone,
      thresholdPercents: quotas.ThresholdPercents,
      currency: pricing.Currency,
    }),
  };
};
