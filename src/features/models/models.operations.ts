import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ModelProviderDescriptor, ModelProviderHealth } from './models.schema.ts';

const refresh = Type.Object({
  refresh: Type.Optional(Type.Boolean({ description: 'Ask the provider now, whatever is known' })),
});
const healthColumns = ['providerName', 'status', 'circuitOpen', 'latencyMs', 'checkedAt', 'detail'];

const health = { tag: 'Models', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;

export const modelOperations = defineOperations({
  list: {
    tag: 'Models',
    role: 'Reader',
    scope: 'AgentsRead',
    method: 'GET',
    path: '/api/models',
    summary: 'List the registered model providers with their catalogs',
    description:
      'The catalog has the models that the configuration lists for a provider. Other models of it can be used all the same.',
    responses: { 200: Type.Array(ModelProviderDescriptor) },
    errors: [],
    cli: { columns: ['name', 'displayName', 'status', 'allowed', 'models.name'] },
  },
  health: {
    ...health,
    path: '/api/models/health',
    summary: 'Health of every model provider; a result that is missing or too old is renewed first',
    description: 'Results come from a cache for a while; `refresh` renews them at once.',
    query: refresh,
    responses: { 200: Type.Array(ModelProviderHealth) },
    errors: [],
    cli: { columns: healthColumns },
  },
  providerHealth: {
    ...health,
    path: '/api/models/health/{provider}',
    summary: 'Health of one model provider',
    description:
      'The answer tells whether the provider could be reached when it was last asked, and whether its circuit is open after too many failures.',
    params: Type.Object({ provider: Type.String({ minLength: 1, maxLength: 64 }) }),
    query: refresh,
    responses: { 200: ModelProviderHealth },
    errors: ['not-found'],
    cli: { command: 'models provider-health' },
  },
});
