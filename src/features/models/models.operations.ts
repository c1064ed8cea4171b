import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ModelProviderDescriptor, ModelProviderHealth } from './models.schema.ts';

const refresh = Type.Object({
  refresh: Type.Optional(
    Type.Boolean({ default: false, description: 'Checks the provider now, even with a cached result' }),
  ),
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
      'The catalog has the models that the configuration lists for a provider. Its other models can be used as well.',
    responses: { 200: Type.Array(ModelProviderDescriptor) },
    errors: [],
    cli: { columns: ['name', 'displayName', 'status', 'allowed', 'models.name'] },
  },
  health: {
    ...health,
    path: '/api/models/health',
    summary: 'Show the health of every model provider; missing or outdated results are renewed first',
    description: 'Results are cached for a while; `refresh` renews them at once.',
    query: refresh,
    responses: { 200: Type.Array(ModelProviderHealth) },
    errors: [],
    cli: { columns: healthColumns },
  },
  providerHealth: {
    ...health,
    path: '/api/models/health/{provider}',
    summary: 'Show the health of one model provider',
    description:
      'The response shows whether the last check reached the provider, and whether its circuit is open after too many failures.',
    params: Type.Object({ provider: Type.String({ minLength: 1, maxLength: 64 }) }),
    query: refresh,
    responses: { 200: ModelProviderHealth },
    errors: ['not-found'],
    cli: { command: 'models provider-health' },
  },
});
