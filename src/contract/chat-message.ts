import Type, { type Static, type TProperties } from 'typebox';
import { JsonValue, nullable, oneOf, Time, Uuid } from './schema.ts';

const part = <const N extends string, const P extends TProperties>(type: N, members: P) =>
  Type.Object({ type: Type.Literal(type), ...members });

const call = { toolCallId: Type.String(), toolName: Type.String() };

/** What a message is made of. Readers ignore a part whose `type` they do not know. */
export const ContentPart = Type.Union(
  [
    part('Text', { text: Type.String() }),
    part('Reasoning', { text: Type.String() }),
    part('Document', { name: Type.String(), text: Type.String() }),
    part('Attachment', { attachmentId: Uuid, mediaType: Type.String(), fileName: Type.String() }),
    part('ToolCall', { ...call, arguments: JsonValue }),
    part('ToolResult', { ...call, result: nullable(Type.String()), errorMessage: nullable(Type.String()) }),
    part('ApprovalRequest', { requestId: Type.String(), ...call, arguments: JsonValue }),
    part('ApprovalResponse', { requestId: Type.String(), approved: Type.Boolean(), reason: nullable(Type.String()) }),
  ],
  { title: 'ContentPart' },
);
export type ContentPart = Static<typeof ContentPart>;

export const ChatMessage = Type.Object(
  {
    sequence: nullable(
      Type.Integer({ description: 'Position in the conversation; null in the recorded input of a run' }),
    ),
    messageId: Type.String(),
    role: oneOf(['System', 'User', 'Assistant', 'Tool']),
    authorName: nullable(Type.String()),
    runId: nullable(Uuid),
    createdAt: Time,
    interrupted: Type.Boolean({ description: 'A cancellation cut off the response' }),
    contents: Type.Array(ContentPart),
  },
  { title: 'ChatMessage' },
);
export type ChatMessage = Static<typeof ChatMessage>;
