import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { ModelProvider, ModelProviders } from '../../providers/models/model-provider.ts';
import type { modelOperations } from './models.operations.ts';
import type { ModelProviderDescriptor } from './models.schema.ts';

/** Only what the operator configured for people to see: no key, endpoint or other setting. */
const describe = ({ name, displayName, catalog }: ModelProvider): ModelProviderDescriptor => ({
  name,
  displayName,
  // Providers are not checked in this version, and one that was never checked is Unknown.
  status: 'Unknown',
  // Without egress policies no tenant is kept from a provider.
  allowed: true,
  models: catalog.map((entry) => ({ ...entry })),
});

export interface ModelServiceDeps {
  readonly providers: Pick<ModelProviders, 'list'>;
}

export const modelService = ({ providers }: ModelServiceDeps): Handlers<typeof modelOperations> => {
  // Providers and catalogs are configuration: they stay as they are until the process ends.
  const descriptors = providers.list().map(describe);
  return {
    async list() {
      return ok(descriptors);
    },
  };
};
