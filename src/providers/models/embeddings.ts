import { isRecord } from '../../contract/record.ts';
import { MalformedAnswerError } from './call-failure.ts';
import type { ModelCall, ModelPart, ModelPrompt, VectorRequest } from './model-provider.ts';
import { chatUsage, impossibleCounts } from './model-usage.ts';
import type { ProviderCalls } from './provider-calls.ts';

/** The texts of a prompt, each of which is to have a vector. */
const textsOf = (prompt: ModelPrompt): string[] =>
  prompt.flatMap(({ role, content }) =>
    role === 'user' ? content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
  );

const indexesOf = (body: unknown): unknown[] => {
  const data = isRecord(body) ? body['data'] : undefined;
  return Array.isArray(data) ? data.map((entry: unknown) => (isRecord(entry) ? entry['index'] : undefined)) : [];
};

/** In the order of the texts, which the numbers of the answer tell where it has them. Throws MalformedAnswerError. */
const orderedVectors = (
  vectors: readonly (readonly number[])[],
  body: unknown,
  count: number,
): readonly (readonly number[])[] => {
  const [first] = vectors;
  if (vectors.length !== count || first === undefined)
    throw new MalformedAnswerError(`${count} texts were answered with ${vectors.length} vectors`);
  if (first.length === 0 || vectors.some(({ length }) => length !== first.length))
    throw new MalformedAnswerError('The vectors are empty, or differ in length');
  const indexes = indexesOf(body);
  if (indexes.every((index) => index === undefined)) return vectors;
  const ordered: (readonly number[] | undefined)[] = vectors.map((_, index) => vectors[indexes.indexOf(index)]);
  if (ordered.includes(undefined)) throw new MalformedAnswerError('The vectors have no text each');
  return ordered as readonly (readonly number[])[];
};

/** A call of an embedding model, by the vendor library. Its answer has no parts but the end; the vectors are taken from the call. */
export const libraryVectors = async (
  calls: ProviderCalls,
  call: ModelCall,
  { dimensions, areTokens, take }: VectorRequest,
): Promise<readonly ModelPart[]> => {
  const { surface } = calls;
  const scope = calls.open(call, false, calls.vectorLimits);
  try {
    const texts = textsOf(call.prompt);
    // The library passes on what it is given; only its types know no tokens.
    const values = areTokens === true ? texts.map((text) => JSON.parse(text) as string) : texts;
    const model = await calls.embedder(call.model);
    scope.waiting();
    const { embeddings, response } = await model.doEmbed({
      values,
      abortSignal: scope.signal,
      ...(dimensions !== null && { dimensions }),
    });
    take(orderedVectors(embeddings, response?.body, values.length));
    const raw = surface.usageOfBody(response?.body);
    const usage = chatUsage(raw);
    const impossible = impossibleCounts(raw);
    return [
      {
        type: 'finish',
        finishReason: 'Stop',
        // Nothing is written, so that only what was read has a price.
        usage: usage.inputTokens === null ? usage : { ...usage, outputTokens: 0 },
        ...(impossible.length > 0 && { impossibleCounts: impossible }),
        responseModel: null,
      },
    ];
  } catch (error) {
    throw calls.failed(scope, error);
  } finally {
    scope.release();
  }
};
