import Type, { type Static } from 'typebox';
import { JsonValue, nullable, oneOf } from '../../contract/schema.ts';

const toolEffects = ['Read', 'Write', 'Destructive', 'External'] as const;

export const ToolDescriptor = Type.Object(
  {
    name: Type.String(),
    description: nullable(Type.String()),
    jsonSchema: nullable(JsonValue),
    kind: oneOf(['Code', 'BuiltIn', 'Client', 'Mcp']),
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
