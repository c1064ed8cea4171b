import Type, { type Static } from 'typebox';
import { closed, lanePattern, nullable, oneOf, sessionIdPattern, Uuid } from './schema.ts';
import { ClientToolResult, ToolApprovalDecision } from './tool-approval.ts';

const concurrencyPolicies = ['Reject', 'Enqueue', 'Interrupt', 'Rollback'] as const;
export type ConcurrencyPolicy = (typeof concurrencyPolicies)[number];

export const maxDocumentBytes = 262_144;

/** Body of run and estimate; at most 4 MiB. */
export const AgentRunRequest = closed(
  {
    message: Type.Optional(nullable(Type.String({ description: 'The next user message' }))),
    sessionId: Type.Optional(
      nullable(Type.String({ pattern: sessionIdPattern, description: 'Absent: a run without history' })),
    ),
    stream: Type.Optional(
      nullable(Type.Boolean({ description: 'False: one JSON response instead of an event stream' })),
    ),
    concurrency: Type.Optional(
      oneOf(concurrencyPolicies, { description: 'Behavior if the session has a run in progress; default Reject' }),
    ),
    culture: Type.Optional(nullable(Type.String({ description: 'BCP 47 tag; an invalid tag selects the default' }))),
    parameters: Type.Optional(nullable(Type.Record(Type.String(), Type.String(), { maxProperties: 1000 }))),
    attachmentIds: Type.Optional(Type.Array(Uuid, { maxItems: 32 })),
    documents: Type.Optional(
      Type.Array(
        closed({
          name: Type.String({ minLength: 1, maxLength: 128 }),
          content: Type.String({ description: `At most ${maxDocumentBytes} bytes` }),
        }),
        { maxItems: 32, description: 'Reference texts, sent separately from the instructions' },
      ),
    ),
    approvals: Type.Optional(
      Type.Array(ToolApprovalDecision, { maxItems: 128, description: 'A decision for every call that waits for one' }),
    ),
    toolResults: Type.Optional(
      Type.Array(ClientToolResult, { maxItems: 128, description: 'A result for every call that waits for the client' }),
    ),
    lane: Type.Optional(nullable(Type.String({ pattern: lanePattern, description: 'Queued runs only' }))),
  },
  { title: 'AgentRunRequest' },
);
export type AgentRunRequest = Static<typeof AgentRunRequest>;
