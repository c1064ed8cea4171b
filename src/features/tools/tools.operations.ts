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
    description: "Each entry shows the schema of the tool's arguments and whether it needs approval.",
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
    summary: 'Summarize the recorded calls of each tool, most called first',
    description:
      'Counts cover calls in runs that the caller may see, with failures and durations. A tool that is no longer registered remains in the list as long as its calls are stored.',
    query: Type.Object({
      startedAfter: Type.Optional(Type.String({ format: 'date-time', description: 'Exclusive' })),
      maxTools: Type.Optional(Type.Integer({ description: 'Rows to return, default 50, clamped to 1..200' })),
    }),
    responses: { 200: Type.Array(ToolUsage) },
    errors: ['run-not-allowed'],
    cli: { columns: ['toolName', 'totalCalls', 'failedCalls', 'errorRate', 'averageDurationMs', 'lastCalledAt'] },
  },
});
