import Type, { type Static } from 'typebox';
import { closed, JsonValue, nullable, oneOf } from './schema.ts';

/** What a person reads who decides about a call. */
export const ToolApprovalPresentation = Type.Object(
  {
    entityType: nullable(Type.String()),
    entityId: nullable(Type.String()),
    entityName: nullable(Type.String()),
    message: nullable(Type.String({ description: 'One sentence for the person who decides' })),
  },
  { title: 'ToolApprovalPresentation' },
);
export type ToolApprovalPresentation = Static<typeof ToolApprovalPresentation>;

/** A call that waits, as an answer and an event carry it. */
export const PendingToolApproval = Type.Object(
  {
    requestId: Type.String(),
    toolCallId: Type.String(),
    toolName: Type.String(),
    arguments: nullable(JsonValue),
    presentation: nullable(ToolApprovalPresentation),
  },
  { title: 'PendingToolApproval' },
);
export type PendingToolApproval = Static<typeof PendingToolApproval>;

/** What the server of a remote tool asks a person. */
const Elicitation = Type.Object(
  {
    mode: oneOf(['form', 'url'], { description: 'url: the person opens that address. The service never does' }),
    message: Type.String({ description: 'Message of the server' }),
    requestedSchema: nullable(JsonValue, { description: 'JSON Schema of `content`, in the mode form' }),
    url: nullable(Type.String()),
  },
  { title: 'Elicitation' },
);

/** A call that the caller's own program executes, or a question of a remote tool, which a person answers. */
export const ClientToolCall = Type.Object(
  {
    callId: Type.String(),
    toolName: Type.String(),
    arguments: JsonValue,
    elicitation: Type.Optional(Elicitation),
  },
  { title: 'ClientToolCall' },
);
export type ClientToolCall = Static<typeof ClientToolCall>;

export const ToolApprovalDecision = closed(
  {
    requestId: Type.String({ minLength: 1, maxLength: 128 }),
    approved: Type.Boolean(),
    reason: Type.Optional(
      nullable(Type.String({ maxLength: 2000, description: 'Sent to the model with a rejection' })),
    ),
    remember: Type.Optional(
      Type.Boolean({ description: 'Also stores a standing rule for this agent and tool; needs PlatformAdmin' }),
    ),
    rememberArgumentsOnly: Type.Optional(
      Type.Boolean({ description: 'The rule applies to exactly these arguments; default: to every call' }),
    ),
  },
  { title: 'ToolApprovalDecision' },
);
export type ToolApprovalDecision = Static<typeof ToolApprovalDecision>;

export const ClientToolResult = closed(
  {
    callId: Type.String({ minLength: 1, maxLength: 256 }),
    result: Type.Optional(nullable(Type.String({ description: 'Exactly one of result and errorMessage' }))),
    errorMessage: Type.Optional(nullable(Type.String({ maxLength: 2000 }))),
  },
  { title: 'ClientToolResult' },
);
export type ClientToolResult = Static<typeof ClientToolResult>;
