import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { oneOf } from '../../contract/schema.ts';
import { runErrors } from '../runs/runs.schema.ts';
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from './chat.schema.ts';
import { OpenAiModel, OpenAiModelList } from './openai.schema.ts';

export const openAi = { tag: 'OpenAI', envelope: 'OpenAi', cli: { handWritten: true } } as const;
export const startRun = { ...openAi, method: 'POST', role: 'Operator', scope: 'RunsWrite' } as const;

/** Inline files are part of a body: one of the largest size, in base64, and what is said with it. */
export const maxRequestBytes = 33_554_432;

export const onDisconnectQuery = {
  onDisconnect: Type.Optional(oneOf(['continue', 'cancel'], { description: 'What a lost client does to the run' })),
};
export const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({ description: 'The answer is given again to every repeat' })),
});

/** What starting a run here may answer beyond what every run may. */
export const startErrors = [
  'unsupported-parameter',
  'missing-required-parameter',
  'message-required',
  'stream-not-possible',
  'parameter-invalid',
  'attribution-invalid',
  'attachment-not-found',
  'file-empty',
  'idempotency-key-invalid',
  'agent-not-found',
  'run-canceled',
  'idempotency-in-progress',
  'attachment-too-large',
  'media-type-not-allowed',
  'idempotency-key-reused',
  'idempotency-disabled',
  'structured-response-invalid',
  ...runErrors,
] as const;

export const openAiModelOperations = defineOperations({
  list: {
    ...openAi,
    method: 'GET',
    path: '/v1/models',
    role: 'Reader',
    scope: 'AgentsRead',
    summary: 'OpenAI API: list the agents as models',
    description:
      'In the order of their names, all of them at once. An agent is called by its name wherever that API has a model.',
    responses: { 200: OpenAiModelList },
    errors: [],
  },
  get: {
    ...openAi,
    method: 'GET',
    path: '/v1/models/{model}',
    role: 'Reader',
    scope: 'AgentsRead',
    summary: 'OpenAI API: show one agent as a model',
    description: 'An agent that the tenant does not have is `model_not_found`.',
    params: Type.Object({ model: Type.String() }),
    responses: { 200: OpenAiModel },
    errors: ['agent-not-found'],
  },
});

export const chatCompletionOperations = defineOperations({
  create: {
    ...startRun,
    path: '/v1/chat/completions',
    summary: 'OpenAI API: run an agent on a conversation that the caller keeps',
    description:
      'The whole conversation is in the request, and no session is read or written. Calls of client-side tools end the answer, and the next request brings their results.',
    query: Type.Object(onDisconnectQuery),
    headers: idempotencyHeaders,
    idempotency: true,
    body: ChatCompletionRequest,
    maxBodyBytes: maxRequestBytes,
    responses: { 200: ChatCompletion },
    stream: ChatCompletionChunk,
    errors: startErrors,
  },
});
