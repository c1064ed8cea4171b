import { documentText } from '../../engine/chat-message.ts';
import type { SessionStore } from './sessions.store.ts';

/** The texts of a session's history as a run would send them; empty for a session that does not exist. */
export const sessionTexts = async (
  store: SessionStore,
  tenantId: string,
  sessionId: string,
  maySee: (ownerId: string | null) => boolean = () => true,
): Promise<readonly string[]> => {
  const row = await store.get(tenantId, sessionId);
  if (row === undefined || !maySee(row.owner_id)) return [];
  const messages = await store.messages(row);
  return messages.flatMap((message) =>
    message.contents.map((part) => {
      if (part.type === 'Document') return documentText(part.name, part.text);
      if (part.type === 'ToolCall') return `${part.toolName} ${JSON.stringify(part.arguments)}`;
      if (part.type === 'ToolResult') return part.result ?? part.errorMessage ?? '';
      return part.text;
    }),
  );
};
