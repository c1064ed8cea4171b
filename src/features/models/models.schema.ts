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
    supportsEmbeddings: Type.Optional(
      Type.Boolean({ description: 'The model creates embeddings, not responses; absent: it creates responses' }),
    ),
    inputCostPerMillionTokens: amount(),
    outputCostPerMillionTokens: amount(),
    cachedInputCostPerMillionTokens: amount(),
  },
  { title: 'ModelDescriptor' },
);

const modelHealthStatuses = ['Unknown', 'Healthy', 'Degraded', 'Unhealthy'] as const;

export const ModelProviderHealth = Type.Object(
  {
    providerName: Type.String(),
    status: oneOf(modelHealthStatuses),
    circuitOpen: Type.Boolean({ description: 'Calls with the global credential are currently rejected' }),
    detail: nullable(Type.String({ description: 'HTTP status and error class' })),
    latencyMs: nullable(Type.Integer({ description: 'Duration of the check' })),
    checkedAt: nullable(Type.String({ format: 'date-time' })),
    models: Type.Array(Type.String(), { description: 'At most 200 ids' }),
  },
  { title: 'ModelProviderHealth' },
);
export type ModelProviderHealth = Static<typeof ModelProviderHealth>;

export const ModelProviderDescriptor = Type.Object(
  {
    name: Type.String(),
    displayName: nullable(Type.String()),
    status: oneOf(modelHealthStatuses),
    allowed: Type.Boolean({ description: "False: the tenant's egress policy excludes the provider" }),
    models: Type.Array(ModelDescriptor),
  },
  { title: 'ModelProviderDescriptor' },
);
export type ModelProviderDescriptor = Static<typeof ModelProviderDescriptor>;
