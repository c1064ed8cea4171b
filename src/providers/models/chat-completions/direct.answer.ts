import { countedJson } from '../../../core/documents/foreign-json.ts';
import { httpFailure } from '../call-failure.ts';
import type { CallScope } from '../call-scope.ts';
import type { ModelCall, ModelPart } from '../model-provider.ts';
import type { ProviderCalls } from '../provider-calls.ts';
import type { AnswerForm } from '../transport/answer-form.ts';
import { textOf } from '../transport/event-text.ts';
import { sendRequest } from '../transport/scoped-fetch.ts';
import { ChatAnswer, type ChatDialect } from './chat-answer.ts';

const partsOf = (text: string, form: AnswerForm, scope: CallScope, dialect: ChatDialect): ModelPart[] => {
  const parts: ModelPart[] = [];
  const failures: unknown[] = [];
  const answer = new ChatAnswer(
    scope,
    {
      push: (part) => void parts.push(part),
      fail: (error) => void failures.push(error),
    },
    dialect,
  );
  const isComplete = form === 'events' ? answer.readEvents(text) : answer.readDocument(text, countedJson);
  if (!isComplete) throw failures[0];
  return parts;
};

/** One call that is answered at once: the vendor library encodes the request, the body is read as a stream's chunks are. */
export const directAnswer = async (calls: ProviderCalls, call: ModelCall): Promise<readonly ModelPart[]> => {
  const scope = calls.open(call, false);
  try {
    const request = await calls.encode(call, scope);
    scope.waiting();
    const response = await sendRequest(calls.pool, request, scope);
    const text = await textOf(response.body);
    if (!response.ok) throw httpFailure(scope, response.status, text);
    return partsOf(text, response.form, scope, calls.surface);
  } catch (error) {
    throw calls.failed(scope, error);
  } finally {
    scope.release();
  }
};
