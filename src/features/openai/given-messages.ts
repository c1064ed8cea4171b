import type { CallContext } from '../../core/context.ts';
import { createTurns } from '../../core/event-loop-turns.ts';
import {
  type AttachmentReference,
  type ChatMessage,
  type ContentPart,
  newMessage,
} from '../../engine/context/index.ts';
import type { ModelJson } from '../../providers/models/model-provider.ts';
import type { GivenInput } from './chat-input.ts';
import type { GivenFiles, GivenMessage } from './given-parts.ts';

export interface GivenMessageDeps {
  readonly files: GivenFiles;
  readonly now: () => number;
  readonly newId: () => string;
}

/** What a run is given, once it has an id. */
export interface GivenTurn {
  readonly message: string | null;
  readonly attachmentIds: string[];
  readonly history: readonly ChatMessage[];
}

const attachmentPart = (reference: AttachmentReference): ContentPart => ({ type: 'Attachment', ...reference });

/** A conversation that a caller keeps as messages of its run; the files in it are kept as attachments. */
export const createGivenMessages = ({ files, now, newId }: GivenMessageDeps) => {
  const contentsOf = async (
    message: GivenMessage,
    keep: (of: Parameters<GivenFiles>[1]) => ReturnType<GivenFiles>,
  ): Promise<readonly ContentPart[]> => {
    if (message.role === 'User') {
      const attachments = (await keep(message.files)).map(attachmentPart);
      return message.text === '' ? attachments : [...attachments, { type: 'Text', text: message.text }];
    }
    if (message.role === 'Tool') {
      const { callId: toolCallId, toolName, result } = message;
      return [{ type: 'ToolResult', toolCallId, toolName, result, errorMessage: null }];
    }
    const calls = message.calls.map(
      ({ callId, toolName, arguments: args }): ContentPart => ({
        type: 'ToolCall',
        toolCallId: callId,
        toolName,
        arguments: args as ModelJson,
      }),
    );
    return message.text === '' ? calls : [{ type: 'Text', text: message.text }, ...calls];
  };

  return async (
    context: CallContext,
    { history, message }: GivenInput,
    sessionId: string | null,
    runId: string,
  ): Promise<GivenTurn> => {
    const keep = (of: Parameters<GivenFiles>[1]) => (of.length === 0 ? [] : files(context, of, sessionId, runId));
    const messages: ChatMessage[] = [];
    const turn = createTurns();
    for (const given of history) {
      messages.push(newMessage(runId, newId(), given.role, now(), await contentsOf(given, async (of) => keep(of))));
      await turn();
    }
    const attachments = message === null ? [] : await keep(message.files);
    return {
      message: message === null ? null : message.text,
      attachmentIds: attachments.map(({ attachmentId }) => attachmentId),
      history: messages,
    };
  };
};

export type GivenMessages = ReturnType<typeof createGivenMessages>;
