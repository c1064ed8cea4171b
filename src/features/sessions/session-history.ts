import type { ChatMessage } from '../../engine/context/index.ts';
import type { SessionStore } from './sessions.store.ts';

/** The history that a run would go on from; empty for a session that does not exist, or may not be seen. */
export const sessionHistory = async (
  store: SessionStore,
  tenantId: string,
  sessionId: string,
  maySee: (ownerId: string | null) => boolean = () => true,
): Promise<readonly ChatMessage[]> => {
  const row = await store.get(tenantId, sessionId);
  return row === undefined || !maySee(row.owner_id) ? [] : store.messages(row);
};
