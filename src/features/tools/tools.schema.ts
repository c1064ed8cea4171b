import Type, { type Static } from 'typebox';
import { JsonValue, nullable, oneOf, Time } from '../../contract/schema.ts';

const toolEffects = ['Read', 'Write', 'Destructive', 'External'] as const;

export const ToolDescriptor = Type.Object(
  {
    name: Type.String(),
    description: nullable(Type.String()),
    jsonSchema: nullable(JsonValue),
    kind: oneOf(['Code', 'BuiltIn', 'Client', 'Mcp', 'RemoteAgent']),
    source: nullable(Type.String()),
    effect: oneOf(toolEffects),
    requiresApproval: Type.Boolean(),
    runsOnClient: Type.Boolean(),
    requiredPermission: nullable(Type.String()),
    timeoutMs: nullable(Type.Integer()),
    maxOutputBytes: nullable(Type.Integer()),
    safeToRepeat: Type.Boolean(),
  },
  { title: 'ToolDescriptor' },
);
export type ToolDescriptor = Static<typeof ToolDescriptor>;

export const ToolUsage = Type.Object(
  {
    toolName: Type.String(),
    totalCalls: Type.Integer(),
    failedCalls: Type.Integer(),
    errorRate: nullable(Type.Number({ description: '0 to 1' })),
    averageDurationMs: nullable(Type.Number()),
    lastCalledAt: nullable(Time),
  },
  { title: 'ToolUsage' },
);
