import Type, { type Static } from 'typebox';
import type { Json } from '../../contract/schema.ts';
import { closed, sessionIdPattern } from '../../contract/schema.ts';
import type { ModelResponseFormat } from '../../providers/models/model-provider.ts';

export const AgentToolInput = closed({
  message: Type.String({ minLength: 1, description: 'The message to the agent' }),
  sessionId: Type.Optional(
    Type.String({
      pattern: sessionIdPattern,
      description: 'A conversation: a new id opens one, the id of an earlier call goes on with it',
    }),
  ),
  parameters: Type.Optional(
    Type.Record(Type.String(), Type.String(), { maxProperties: 1000, description: 'Parameters of the agent' }),
  ),
});
export type AgentToolInput = Static<typeof AgentToolInput>;

const isRecord = (value: unknown): value is Readonly<Record<string, Json>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** References that still lead where they did once the schema is a member of another one. */
const isMovable = (schema: Json): boolean =>
  !isRecord(schema)
    ? !Array.isArray(schema) || schema.every(isMovable)
    : Object.entries(schema).every(([name, value]) =>
        name === '$ref' && typeof value === 'string'
          ? /^#\/(?:\$defs|definitions)\//.test(value)
          : name !== '$dynamicRef' && name !== '$id' && isMovable(value),
      );

export const isJsonFormat = (format: ModelResponseFormat | null): format is ModelResponseFormat =>
  format?.kind === 'Json' || format?.kind === 'JsonSchema';

/** The schema of what a call answers, for an agent whose answers are JSON; undefined for every other. */
export const agentOutputSchema = (format: ModelResponseFormat | null): Json | undefined => {
  if (!isJsonFormat(format)) return undefined;
  const schema = (format.schema ?? {}) as Json;
  const known = isRecord(schema) && isMovable(schema) ? schema : {};
  const { $defs, definitions, $schema: _dialect, ...output } = known;
  return {
    type: 'object',
    properties: {
      runId: { type: 'string' },
      sessionId: { type: ['string', 'null'] },
      output,
      text: { type: 'string', description: 'an answer that is no JSON' },
      errorType: { type: 'string' },
      warnings: { type: 'array', items: { type: 'string' }, description: 'what the store did not take of the run' },
    },
    required: ['runId', 'sessionId'],
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions }),
  };
};
