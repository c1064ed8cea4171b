import { isRecord } from '../../contract/record.ts';
import { countedJson, parseForeignJson } from '../../core/documents/foreign-json.ts';
import { httpFailure, MalformedAnswerError } from './call-failure.ts';
import type { ModelCall, ModelPart, ModelPrompt, VectorRequest } from './model-provider.ts';
import { chatUsage, impossibleCounts } from './model-usage.ts';
import type { ProviderCalls } from './provider-calls.ts';
import { textOf } from './transport/event-text.ts';
import { sendRequest } from './transport/scoped-fetch.ts';

/** The texts of a prompt, each of which is to have a vector. */
const textsOf = (prompt: ModelPrompt): string[] =>
  prompt.flatMap(({ role, content }) =>
    role === 'user' ? content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
  );

interface Entry {
  readonly index: unknown;
  readonly vector: readonly number[];
}

const entryOf = (entry: unknown): Entry => {
  const vector: unknown = isRecord(entry) ? entry['embedding'] : undefined;
  if (!isRecord(entry) || !Array.isArray(vector) || !vector.every((number) => typeof number === 'number'))
    throw new MalformedAnswerError('An entry of the answer has no vector of numbers');
  return { index: entry['index'], vector };
};

/** As many entries as there are texts. Throws MalformedAnswerError. */
const entriesOf = (body: unknown, count: number): readonly Entry[] => {
  const data = isRecord(body) ? body['data'] : undefined;
  if (!Array.isArray(data)) throw new MalformedAnswerError('The answer has no list of vectors');
  if (data.length !== count) throw new MalformedAnswerError(`${count} texts were answered with ${data.length} vectors`);
  return data.map(entryOf);
};

/** In the order of the texts, which the numbers of the answer tell where it has them. Throws MalformedAnswerError. */
const orderedVectors = (entries: readonly Entry[]): readonly (readonly number[])[] => {
  const vectors = entries.map(({ vector }) => vector);
  const [first] = vectors;
  if (first === undefined || first.length === 0 || vectors.some(({ length }) => length !== first.length))
    throw new MalformedAnswerError('The vectors are empty, or differ in length');
  if (entries.every(({ index }) => index === undefined)) return vectors;
  const byIndex = new Map(entries.map(({ index, vector }) => [index, vector]));
  const ordered = vectors.map((_, index) => byIndex.get(index));
  if (ordered.includes(undefined)) throw new MalformedAnswerError('The vectors have no text each');
  return ordered as readonly (readonly number[])[];
};

/** What was counted while it arrived. Throws MalformedAnswerError. */
const parsedAnswer = (text: string): unknown => {
  try {
    return parseForeignJson(text, countedJson);
  } catch (cause) {
    throw new MalformedAnswerError('The answer is not JSON', { cause });
  }
};

/**
 * A call of an embedding model: the vendor library encodes the request. It does not read the answer, since it would report each element that is
 * no vector, which costs fifty times what parsing it costs. The answer has no parts but the end; the vectors are taken from the call.
 */
export const answerVectors = async (
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
    const request = await calls.encodeVectors(call.model, values, dimensions, scope);
    scope.waiting();
    const response = await sendRequest(calls.pool, request, scope);
    const text = await textOf(response.body);
    if (!response.ok) throw httpFailure(scope, response.status, text);
    const body = parsedAnswer(text);
    take(orderedVectors(entriesOf(body, values.length)));
    const raw = surface.usageOfBody(body);
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
