import Type, { type Static } from 'typebox';
import { JsonValue, nullable } from '../../contract/schema.ts';
import { count, maybe, open } from './openai.schema.ts';

export const EmbeddingRequest = open(
  {
    model: maybe(Type.String({ description: 'provider/model' })),
    input: Type.Unsafe<Static<typeof JsonValue>>({
      ...JsonValue,
      description:
        'One text or up to 2048 texts; or one list of tokens or up to 2048 lists. Tokens are rejected if content guards inspect input, since guards cannot read them',
    }),
    encoding_format: maybe(Type.String({ description: '`float` or `base64`' })),
    dimensions: maybe(Type.Integer()),
  },
  { title: 'EmbeddingRequest' },
);
export type EmbeddingRequest = Static<typeof EmbeddingRequest>;

const EmbeddingUsage = Type.Object({ prompt_tokens: count(), total_tokens: count() }, { title: 'EmbeddingUsage' });

export const EmbeddingList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(
      Type.Object({
        object: Type.Literal('embedding'),
        index: Type.Integer(),
        embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
          description: 'Numbers, or the base64 of 32-bit little-endian floats',
        }),
      }),
    ),
    model: Type.String(),
    usage: nullable(EmbeddingUsage),
  },
  { title: 'EmbeddingList' },
);
export type EmbeddingList = Static<typeof EmbeddingList>;
