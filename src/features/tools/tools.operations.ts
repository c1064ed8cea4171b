import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ToolDescriptor } from './tools.schema.ts';

export const toolOperations = defineOperations({
  list: {
    tag: 'Tools',
    role: 'Reader',
    scope: 'AgentsRead',
    method: 'GET',
    path: '/api/tools',
    summary: 'List the tools that a definition may name',
    responses: { 200: Type.Array(ToolDescriptor) },
    errors: [],
    cli: { columns: ['name', 'kind', 'effect', 'requiredPermission', 'timeoutMs', 'description'] },
  },
});
