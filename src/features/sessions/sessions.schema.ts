import Type, { type Static } from 'typebox';
import { ChatMessage } from '../../contract/chat-message.ts';
import { closed, JsonValue, nullable, oneOf, sessionIdPattern, Time, Uuid } from '../../contract/schema.ts';

const record = {
  id: Type.String(),
  tenantId: Type.String(),
  agentName: Type.String({ description: 'Agent of the first turn; no other agent runs on the session' }),
  ownerId: nullable(Type.String({ description: 'Null: no owner' })),
  conversationId: Uuid,
  version: Type.Integer({ minimum: 1, description: 'Increases by one with every saved turn' }),
  stateSchemaVersion: Type.Integer(),
  messageCount: nullable(Type.Integer({ minimum: 0 }), { description: 'Null on a store in memory' }),
  parentSessionId: nullable(
    Type.String({ description: 'Session that this one was branched from; it may no longer exist' }),
  ),
  parentConversationId: nullable(Uuid),
  branchFromSequence: nullable(Type.Integer({ minimum: -1, description: 'Last shared message; -1: none' })),
  lastRunId: nullable(Uuid),
  activeRunId: nullable(Uuid),
  createdAt: Time,
  updatedAt: Time,
};

export const SessionRecord = Type.Object(record, { title: 'SessionRecord' });
export type SessionRecord = Static<typeof SessionRecord>;

export const OpenRequest = Type.Object(
  {
    kind: oneOf(['Approval', 'ClientTool']),
    id: Type.String({ description: 'ID of the approval request or of the tool call' }),
    toolName: Type.String(),
    runId: Uuid,
  },
  { title: 'OpenRequest' },
);
export type OpenRequest = Static<typeof OpenRequest>;

export const SessionDetailResponse = Type.Object(
  {
    ...record,
    messages: nullable(Type.Array(ChatMessage), {
      description: 'Complete history, by sequence; null on a store in memory',
    }),
    state: JsonValue,
    openRequests: Type.Array(OpenRequest, { description: 'Requests that the session waits for' }),
  },
  { title: 'SessionDetailResponse' },
);
export type SessionDetailResponse = Static<typeof SessionDetailResponse>;

export const SessionBranchRequest = closed(
  {
    upToSequence: Type.Optional(
      nullable(Type.Number({ description: 'Sequence of the last message to include, from 0; absent: all' })),
    ),
    newSessionId: Type.Optional(
      nullable(
        Type.String({ pattern: sessionIdPattern, description: 'ID of the new session; absent: a UUID is generated' }),
      ),
    ),
  },
  { title: 'SessionBranchRequest' },
);

export const SessionBranchResult = Type.Object(
  {
    sessionId: Type.String(),
    conversationId: Uuid,
    parentSessionId: Type.String(),
    parentConversationId: Uuid,
    branchFromSequence: Type.Integer({ minimum: -1 }),
    copiedItemCount: Type.Integer({ minimum: 0 }),
  },
  { title: 'SessionBranchResult' },
);
