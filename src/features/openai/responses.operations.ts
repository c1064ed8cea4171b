import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Metadata, OpenAiDeleted } from './openai.schema.ts';
import {
  idempotencyHeaders,
  maxRequestBytes,
  onDisconnectQuery,
  openAi,
  startErrors,
  startRun,
} from './openai-operation.schema.ts';
import {
  OpenAiConversation,
  OpenAiItem,
  OpenAiItemList,
  OpenAiResponse,
  OpenAiResponseEvent,
  ResponseRequest,
} from './responses.schema.ts';

const read = { ...openAi, method: 'GET', role: 'Reader', scope: 'RunsRead' } as const;
const change = { ...openAi, role: 'Operator', scope: 'RunsWrite' } as const;
const ResponseId = Type.Object({ responseId: Type.String() });
const ConversationId = Type.Object({ conversationId: Type.String() });

const pageQuery = Type.Object({
  limit: Type.Optional(Type.String({ description: 'Items per page, clamped to 1..100; default 20' })),
  order: Type.Optional(Type.String({ description: '`asc` or `desc`; default `desc`' })),
  after: Type.Optional(Type.String({ description: 'The page begins after this item' })),
});

export const responseOperations = defineOperations({
  create: {
    ...startRun,
    path: '/v1/responses',
    summary: 'OpenAI API: run an agent and store the conversation',
    description:
      '`conversation` continues the session of that id; `previous_response_id` continues from that response in a session of its own. `store: false` stores neither session nor response.',
    query: Type.Object(onDisconnectQuery),
    headers: idempotencyHeaders,
    idempotency: true,
    body: ResponseRequest,
    maxBodyBytes: maxRequestBytes,
    responses: { 200: OpenAiResponse },
    stream: OpenAiResponseEvent,
    errors: [
      ...startErrors,
      'tool-call-unknown',
      'tool-results-missing',
      'session-owner-required',
      'session-not-owned',
      'previous-response-not-found',
      'session-agent-mismatch',
      'session-busy',
      'session-conflict',
      'tool-call-answered',
      'approval-pending',
    ],
  },
  get: {
    ...read,
    path: '/v1/responses/{responseId}',
    summary: 'OpenAI API: read a response, or its events',
    description:
      'A response in progress is shown in its current state. `stream=true` sends its events from the log, after the one that `starting_after` names, until the run ends.',
    params: ResponseId,
    query: Type.Object({
      stream: Type.Optional(Type.Boolean()),
      starting_after: Type.Optional(Type.Integer({ minimum: 0, description: 'Number of the last event received' })),
    }),
    responses: { 200: OpenAiResponse },
    stream: OpenAiResponseEvent,
    errors: ['response-not-found'],
  },
  remove: {
    ...change,
    method: 'DELETE',
    path: '/v1/responses/{responseId}',
    summary: 'OpenAI API: delete a response and its own session',
    description: 'Its run remains, and so do responses that continue it.',
    params: ResponseId,
    responses: { 200: OpenAiDeleted },
    errors: ['response-not-found', 'run-not-finished', 'session-busy'],
    audit: { action: 'response.delete', entity: 'response', mode: 'noted' },
  },
  cancel: {
    ...change,
    method: 'POST',
    path: '/v1/responses/{responseId}/cancel',
    summary: 'OpenAI API: cancel the run of a response',
    description: 'Returns the response in its current state; a response that has ended is returned unchanged.',
    params: ResponseId,
    responses: { 200: OpenAiResponse },
    errors: ['response-not-found', 'run-not-on-this-instance'],
  },
  inputItems: {
    ...read,
    path: '/v1/responses/{responseId}/input_items',
    summary: 'OpenAI API: list the input items of a response',
    description: 'The output of earlier responses is not included.',
    params: ResponseId,
    query: pageQuery,
    responses: { 200: OpenAiItemList },
    errors: ['response-not-found'],
  },
});

export const conversationOperations = defineOperations({
  create: {
    ...change,
    method: 'POST',
    path: '/v1/conversations',
    summary: 'OpenAI API: reserve a conversation',
    description: 'Its session begins with the first response that names it.',
    body: Type.Optional(
      Type.Object({
        metadata: Type.Optional(Type.Union([Metadata, Type.Null()])),
        items: Type.Optional(Type.Unknown()),
      }),
    ),
    responses: { 200: OpenAiConversation },
    errors: ['unsupported-parameter', 'session-owner-required'],
  },
  get: {
    ...read,
    path: '/v1/conversations/{conversationId}',
    summary: 'OpenAI API: show a conversation',
    description: 'A session that runs of this tenant have used is also a conversation.',
    params: ConversationId,
    responses: { 200: OpenAiConversation },
    errors: ['conversation-not-found'],
  },
  update: {
    ...change,
    method: 'POST',
    path: '/v1/conversations/{conversationId}',
    summary: 'OpenAI API: replace the metadata of a conversation',
    description: 'Pairs that the request omits are removed.',
    params: ConversationId,
    body: Type.Object({ metadata: Type.Union([Metadata, Type.Null()]) }),
    responses: { 200: OpenAiConversation },
    errors: ['conversation-not-found'],
  },
  remove: {
    ...change,
    method: 'DELETE',
    path: '/v1/conversations/{conversationId}',
    summary: 'OpenAI API: delete a conversation with its session and files',
    description: 'Its runs remain. While one of them is active, the deletion is rejected.',
    params: ConversationId,
    responses: { 200: OpenAiDeleted },
    errors: ['conversation-not-found', 'session-busy'],
    audit: { action: 'conversation.delete', entity: 'conversation', mode: 'noted' },
  },
  items: {
    ...read,
    path: '/v1/conversations/{conversationId}/items',
    summary: 'OpenAI API: list the items of a conversation',
    description: 'The list is newest first unless `order` is `asc`. Only runs write items.',
    params: ConversationId,
    query: pageQuery,
    responses: { 200: OpenAiItemList },
    errors: ['conversation-not-found'],
  },
  item: {
    ...read,
    path: '/v1/conversations/{conversationId}/items/{itemId}',
    summary: 'OpenAI API: show one item of a conversation',
    description: 'Lists and responses contain the id of the item.',
    params: Type.Object({ conversationId: Type.String(), itemId: Type.String() }),
    responses: { 200: OpenAiItem },
    errors: ['conversation-not-found', 'item-not-found'],
  },
});
