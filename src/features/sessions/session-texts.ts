import { attachmentsIn, documentText } from '../../engine/chat-message.ts';
import type { AttachmentReference } from '../../engine/run-attachments.ts';
import type { SessionStore } from './sessions.store.ts';

/** A session's history as a run would send it; what the attachments hold is not part of it. */
export interface SessionTexts {
  readonly texts: readonly string[];
  readonly attachments: readonly AttachmentReference[];
}

/** Empty for a session that does not exist. */
export const sessionTexts = async (
  store: SessionStore,
  tenantId: string,
  sessionId: string,
  maySee: (ownerId: string | null) => boolean = () => true,
): Promise<SessionTexts> => {
  const row = await store.get(tenantId, sessionId);
  if (row === undefined || !maySee(row.owner_id)) return { texts: [], attachments: [] };
  const messages = await store.messages(row);
  const texts = messages.flatMap((message) =>
    message.contents.map((part) => {
      if (part.type === 'Attachment') return '';
      if (part.type === 'Document') return documentText(part.name, part.text);
      if (part.type === 'ToolCall') return `${part.toolName} ${JSON.stringify(part.arguments)}`;
      if (part.type === 'ToolResult') return part.result ?? part.errorMessage ?? '';
      return part.text;
    }),
  );
  return { texts, attachments: attachmentsIn(messages) };
};
