import Type, { type Static } from 'typebox';
import { nullable, oneOf } from '../../contract/schema.ts';

const amount = () => nullable(Type.Number());

const ModelDescriptor = Type.Object(
  {
    name: Type.String(),
    displayName: nullable(Type.String()),
    contextWindowTokens: nullable(Type.Integer()),
    maxOutputTokens: nullable(Type.Integer()),
    supportsStreaming: Type.Boolean(),
    supportsTools: Type.Boolean(),
    supportsReasoning: Type.Boolean(),
    supportsStructuredOutput: nullable(Type.Boolean()),
    inputCostPerMillionTokens: amount(),
    outputCostPerMillionTokens: amount(),
    cachedInputCostPerMillionTokens: amount(),
  },
  { title: 'ModelDescriptor' },
);

export const ModelProviderDescriptor = Type.Object(
  {
    name: Type.String(),
    displayName: nullable(Type.String()),
    status: oneOf(['Unknown', 'Healthy', 'Degraded', 'Unhealthy']),
    allowed: Type.Boolean(),
    models: Type.Array(ModelDescriptor),
  },
  { title: 'ModelProviderDescriptor' },
);
export type ModelProviderDescriptor = Static<typeof ModelProviderDescriptor>;
