import Type, { type Static } from 'typebox';
import { JsonValue, nullable } from '../../contract/schema.ts';
import { count, maybe, open } from './openai.schema.ts';

export const EmbeddingRequest = open(
  {
    model: maybe(Type.String({ description: 'provider/model' })),
    input: Type.Unsafe<Static<typeof JsonValue>>({
      ...JsonValue,
      description:
        'A text, or up to 2048 of them; or tokens, a list or up to 2048 lists. Where content guards inspect input, tokens are refused: nobody could say what they stand for',
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
          description: 'Numbers, or the base64 of as many floats of 32 bits, lowest byte first',
        }),
      }),
    ),
    model: Type.String(),
    usage: nullable(EmbeddingUsage),
  },
  { title: 'EmbeddingList' },
);
export type EmbeddingList = Static<typeof EmbeddingList>;
