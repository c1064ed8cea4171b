import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ModelProviderDescriptor } from './models.schema.ts';

export const modelOperations = defineOperations({
  list: {
    tag: 'Models',
    role: 'Reader',
    scope: 'AgentsRead',
    method: 'GET',
    path: '/api/models',
    summary: 'List the registered model providers with their catalogs',
    responses: { 200: Type.Array(ModelProviderDescriptor) },
    errors: [],
    cli: { columns: ['name', 'displayName', 'status', 'allowed'] },
  },
});
