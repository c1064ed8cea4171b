import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ToolDescriptor, ToolUsage } from './tools.schema.ts';

export const toolOperations = defineOperations({
  list: {
    tag: 'Tools',
    role: 'Reader',
    scope: 'AgentsRead',
    method: 'GET',
    path: '/api/tools',
    summary: 'List the tools that a definition may name',
    description: 'Each tool comes with the schema of its arguments and whether it asks for approval.',
    responses: { 200: Type.Array(ToolDescriptor) },
    errors: [],
    cli: { columns: ['name', 'kind', 'effect', 'requiredPermission', 'timeoutMs', 'description'] },
  },
  usage: {
    tag: 'Tools',
    role: 'Reader',
    scope: 'RunsRead',
    method: 'GET',
    path: '/api/tools/usage',
    summary: 'Sum up the recorded calls of each tool, most called first',
    description:
      'Counted are the calls in runs that the caller may see, with failures and durations. A tool that is not registered any more is in the list as long as its calls are recorded.',
    query: Type.Object({
      startedAfter: Type.Optional(Type.String({ format: 'date-time', description: 'Exclusive' })),
      maxTools: Type.Optional(Type.Integer({ description: 'Rows to return, default 50, clamped to 1..200' })),
    }),
    responses: { 200: Type.Array(ToolUsage) },
    errors: ['run-not-allowed'],
    cli: { columns: ['toolName', 'totalCalls', 'failedCalls', 'errorRate', 'averageDurationMs', 'lastCalledAt'] },
  },
});
