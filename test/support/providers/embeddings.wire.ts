import { chatWire } from './chat.wire.ts';
import type { SimulatedAnswer, SimulatedRequest, Wire } from './scenario.ts';

/** As a vector of any text: as many numbers as are asked for, the first its length and the others exact in 32 bits. */
export const simulatedVector = (text: string, dimensions = 4): number[] =>
  Array.from({ length: dimensions }, (_, index) => (index === 0 ? text.length : 0.5 ** index));

const inputsOf = ({ body }: SimulatedRequest): readonly string[] => body['input'] as readonly string[];

const document = ({ vectors, usage }: SimulatedAnswer, request: SimulatedRequest): unknown => ({
  object: 'list',
  data: (
    vectors ??
    inputsOf(request).map((text, index) => ({
      index,
      embedding: simulatedVector(text, request.body['dimensions'] as number | undefined),
    }))
  ).map((vector) => ({ object: 'embedding', ...vector })),
  model: request.model,
  ...(usage && { usage: { prompt_tokens: usage.input, total_tokens: usage.input } }),
});

/** Embeddings of the OpenAI API, which are never streamed. */
export const embeddingsWire: Wire = {
  ...chatWire,
  frames: () => [],
  document,
  objection: ({ body }) =>
    Array.isArray(body['input']) && body['input'].length > 0 ? null : 'input must be a list that is not empty',
};
