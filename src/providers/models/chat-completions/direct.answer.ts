import { foreignJsonLimits } from '../../../core/documents/foreign-json.ts';
import { httpFailure, MalformedAnswerError } from '../call-failure.ts';
import type { CallScope } from '../call-scope.ts';
import type { ModelCall, ModelPart } from '../model-provider.ts';
import type { ProviderCalls } from '../provider-calls.ts';
import { chatNamespace } from '../surfaces/openai.surface.ts';
import { sendRequest } from '../transport/scoped-fetch.ts';
import type { WireBody } from '../transport/wire-body.ts';
import { ChatAnswer } from './chat-answer.ts';

const bodyText = async (body: WireBody): Promise<string> => {
  const reader = body.getReader();
  const first = await reader.read();
  if (first.done) return '';
  const chunks = [first.value];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks).toString();
    chunks.push(value);
  }
};

const partsOf = (text: string, scope: CallScope, namespace: string): ModelPart[] => {
  const parts: ModelPart[] = [];
  const answer = new ChatAnswer(
    scope,
    {
      push: (part) => void parts.push(part),
      fail: (error) => {
        throw error;
      },
    },
    namespace,
  );
  answer.read(text, 'The answer', foreignJsonLimits);
  // Of a stream this means that it broke off; a whole body is just none of these answers.
  if (!answer.hasChoice) throw new MalformedAnswerError('The answer has no choice');
  answer.complete();
  return parts;
};

/** One call that is answered at once: the vendor library encodes the request, the body is read as a stream's chunks are. */
export const directAnswer = async (calls: ProviderCalls, call: ModelCall): Promise<readonly ModelPart[]> => {
  const scope = calls.open(call, false);
  try {
    const request = await calls.encode(call, scope);
    scope.waiting();
    const response = await sendRequest(calls.pool, request, scope);
    const text = await bodyText(response.body);
    if (!response.ok) throw httpFailure(scope, response.status, text);
    return partsOf(text, scope, chatNamespace(calls.surface));
  } catch (error) {
    throw calls.failed(scope, error);
  } finally {
    scope.release();
  }
};
