import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { ModelProvider, ModelProviders } from '../../providers/models/index.ts';
import type { ModelHealth } from './model-health.ts';
import type { modelOperations } from './models.operations.ts';
import type { ModelProviderDescriptor, ModelProviderHealth } from './models.schema.ts';

/** Only what the operator configured for people to see: no key, endpoint or other setting. */
const describe = (
  { name, displayName, catalog }: ModelProvider,
  { status }: ModelProviderHealth,
  allowed: boolean,
): ModelProviderDescriptor => ({
  name,
  displayName,
  status,
  allowed,
  models: catalog.map((entry) => ({ ...entry })),
});

export interface ModelServiceDeps {
  readonly providers: Pick<ModelProviders, 'list' | 'get'>;
  readonly health: ModelHealth;
  /** What the tenant's egress policy says of a provider. */
  readonly allows: (tenantId: string, providerName: string) => boolean;
}

export const modelService = ({ providers, health, allows }: ModelServiceDeps): Handlers<typeof modelOperations> => ({
  async list({ tenantId }) {
    await health.upToDate();
    return ok(
      providers.list().map((provider) => describe(provider, health.known(provider), allows(tenantId, provider.name))),
    );
  },
  async health(_context, { query }) {
    return ok(await Promise.all(providers.list().map((provider) => health.current(provider, query.refresh ?? false))));
  },
  async providerHealth(_context, { params, query }) {
    const provider = providers.get(params.provider);
    if (provider === undefined)
      throw new AcpError('not-found', `There is no model provider with the name "${params.provider}".`);
    return ok(await health.current(provider, query.refresh ?? false));
  },
});
