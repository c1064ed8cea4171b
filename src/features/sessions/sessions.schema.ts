import Type, { type Static } from 'typebox';
import { ChatMessage } from '../../contract/chat-message.ts';
import { closed, JsonValue, nullable, oneOf, sessionIdPattern, Time, Uuid } from '../../contract/schema.ts';

const record = {
  id: Type.String(),
  tenantId: Type.String(),
  agentName: Type.String({ description: 'Agent of the first turn; no other agent runs on the session' }),
  ownerId: nullable(Type.String({ description: 'Null: nobody owns it' })),
  conversationId: Uuid,
  version: Type.Integer({ minimum: 1, description: 'One more with every saved turn' }),
  stateSchemaVersion: Type.Integer(),
  messageCount: nullable(Type.Integer({ minimum: 0 }), { description: 'Null on a store that keeps nothing' }),
  parentSessionId: nullable(Type.String({ description: 'Where a branch came from; may be gone' })),
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
    id: Type.String({ description: 'Id of the approval request or of the tool call' }),
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
      description: 'The whole history, by sequence; null on a store that keeps nothing',
    }),
    state: JsonValue,
    openRequests: Type.Array(OpenRequest, { description: 'What the session waits for' }),
  },
  { title: 'SessionDetailResponse' },
);
export type SessionDetailResponse = Static<typeof SessionDetailResponse>;

export const SessionBranchRequest = closed(
  {
    upToSequence: Type.Optional(
      nullable(Type.Number({ description: 'Last message to take over, from 0; absent: all' })),
    ),
    newSessionId: Type.Optional(
      nullable(Type.String({ pattern: sessionIdPattern, description: 'Absent: a UUID is made' })),
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
