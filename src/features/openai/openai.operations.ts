import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from './chat.schema.ts';
import { EmbeddingList, EmbeddingRequest } from './embeddings.schema.ts';
import { OpenAiModel, OpenAiModelList } from './openai.schema.ts';
import {
  idempotencyHeaders,
  maxRequestBytes,
  onDisconnectQuery,
  openAi,
  startErrors,
  startRun,
} from './openai-operation.schema.ts';

export const openAiModelOperations = defineOperations({
  list: {
    ...openAi,
    method: 'GET',
    path: '/v1/models',
    role: 'Reader',
    scope: 'AgentsRead',
    summary: 'OpenAI API: list the agents as models',
    description:
      'One response lists all agents by name and, with `Host:OpenAiCompat:ExposeModels`, models of providers as `provider/model`. The name of an agent is valid wherever that API expects a model.',
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
    description: 'An agent that does not exist in the tenant is `model_not_found`.',
    params: Type.Object({ model: Type.String() }),
    // The official client for Python does not encode the slash of `provider/model`.
    takesSlashes: true,
    responses: { 200: OpenAiModel },
    errors: ['agent-not-found'],
  },
});

export const chatCompletionOperations = defineOperations({
  create: {
    ...startRun,
    path: '/v1/chat/completions',
    summary: 'OpenAI API: run an agent or a model on a conversation that the caller stores',
    description:
      'The request contains the complete conversation; no session is read or written. Calls of client-side tools end the response, and the next request contains their results.',
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

export const embeddingOperations = defineOperations({
  create: {
    ...startRun,
    path: '/v1/embeddings',
    summary: 'OpenAI API: create vectors of texts with an embedding model',
    description:
      'Available only with `Host:OpenAiCompat:ExposeModels`, for models that a provider lists with `SupportsEmbeddings`. The texts are the message of a run; the vectors are not stored.',
    body: EmbeddingRequest,
    maxBodyBytes: maxRequestBytes,
    responses: { 200: EmbeddingList },
    errors: startErrors,
  },
});
