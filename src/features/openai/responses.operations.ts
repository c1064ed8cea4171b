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
  limit: Type.Optional(Type.String({ description: 'Items of a page, held within 1 and 100; default 20' })),
  order: Type.Optional(Type.String({ description: '`asc` or `desc`, which is the default' })),
  after: Type.Optional(Type.String({ description: 'The page begins behind this item' })),
});

export const responseOperations = defineOperations({
  create: {
    ...startRun,
    path: '/v1/responses',
    summary: 'OpenAI API: run an agent and keep what was said',
    description:
      'With `conversation` the session of that id goes on; with `previous_response_id` a session of its own does, from that response. `store: false` keeps neither.',
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
    summary: 'OpenAI API: read a response, or its events again',
    description:
      'A response in progress is shown as it is by now. `stream=true` sends its events from the log, after the one that `starting_after` names, and goes on while the run does.',
    params: ResponseId,
    query: Type.Object({
      stream: Type.Optional(Type.Boolean()),
      starting_after: Type.Optional(
        Type.Integer({ minimum: 0, description: 'Number of the last event that is known' }),
      ),
    }),
    responses: { 200: OpenAiResponse },
    stream: OpenAiResponseEvent,
    errors: ['response-not-found'],
  },
  remove: {
    ...change,
    method: 'DELETE',
    path: '/v1/responses/{responseId}',
    summary: 'OpenAI API: remove a response and the session that is its own',
    description: 'Its run stays, and so do responses that went on from it.',
    params: ResponseId,
    responses: { 200: OpenAiDeleted },
    errors: ['response-not-found', 'run-not-finished', 'session-busy'],
    audit: { action: 'response.delete', entity: 'response', mode: 'noted' },
  },
  cancel: {
    ...change,
    method: 'POST',
    path: '/v1/responses/{responseId}/cancel',
    summary: 'OpenAI API: ask the run of a response to stop',
    description: 'The answer is the response as it is then; one that has ended is answered as it was.',
    params: ResponseId,
    responses: { 200: OpenAiResponse },
    errors: ['response-not-found', 'run-not-on-this-instance'],
  },
  inputItems: {
    ...read,
    path: '/v1/responses/{responseId}/input_items',
    summary: 'OpenAI API: list what a response was asked with',
    description: 'What an earlier response had said is not part of it.',
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
    description: 'A session that runs of this tenant have used is one, too.',
    params: ConversationId,
    responses: { 200: OpenAiConversation },
    errors: ['conversation-not-found'],
  },
  update: {
    ...change,
    method: 'POST',
    path: '/v1/conversations/{conversationId}',
    summary: 'OpenAI API: replace the metadata of a conversation',
    description: 'Pairs that the request does not have are gone.',
    params: ConversationId,
    body: Type.Object({ metadata: Type.Union([Metadata, Type.Null()]) }),
    responses: { 200: OpenAiConversation },
    errors: ['conversation-not-found'],
  },
  remove: {
    ...change,
    method: 'DELETE',
    path: '/v1/conversations/{conversationId}',
    summary: 'OpenAI API: remove a conversation, with its session and the files of it',
    description: 'Its runs stay. While one is active in it, the removal is refused.',
    params: ConversationId,
    responses: { 200: OpenAiDeleted },
    errors: ['conversation-not-found', 'session-busy'],
    audit: { action: 'conversation.delete', entity: 'conversation', mode: 'noted' },
  },
  items: {
    ...read,
    path: '/v1/conversations/{conversationId}/items',
    summary: 'OpenAI API: list what was said in a conversation',
    description: 'The newest first, unless `order` says otherwise. Items are written by runs alone.',
    params: ConversationId,
    query: pageQuery,
    responses: { 200: OpenAiItemList },
    errors: ['conversation-not-found'],
  },
  item: {
    ...read,
    path: '/v1/conversations/{conversationId}/items/{itemId}',
    summary: 'OpenAI API: show one item of a conversation',
    description: 'Its id is the one that lists and responses have of it.',
    params: Type.Object({ conversationId: Type.String(), itemId: Type.String() }),
    responses: { 200: OpenAiItem },
    errors: ['conversation-not-found', 'item-not-found'],
  },
});
