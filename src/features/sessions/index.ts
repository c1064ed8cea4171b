import type { ChatMessage as PublicMessage } from '../../contract/chat-message.ts';
import type { Handlers, Principal } from '../../core/context.ts';
import type { Statement } from '../../db/statement.ts';
import type { SessionRow } from '../../db/tables.ts';
import { type ChatMessage, publicMessage } from '../../engine/context/index.ts';
import type { SessionAccess } from './session-access.ts';
import { createSessionBranchStore } from './session-branches.store.ts';
import { sessionHistory } from './session-history.ts';
import { createSessionRemoval, type SessionRemovalDeps } from './session-removal.ts';
import { createSessionTurns, type SessionTurnDeps, type SessionTurns } from './session-turns.ts';
import type { sessionOperations } from './sessions.operations.ts';
import { type SessionServiceDeps, sessionService } from './sessions.service.ts';
import { createSessionStore, type SessionStore } from './sessions.store.ts';

export { createSessionAccess, type SessionAccess } from './session-access.ts';
export type { SessionCleanup, SessionDeletion } from './session-removal.ts';
export { createSessionTurns, type SessionPlace, type SessionTurns } from './session-turns.ts';
export type { OpenRequests } from './sessions.service.ts';
export { createSessionStore, type SessionStore } from './sessions.store.ts';

export interface SessionsDeps
  extends Pick<SessionTurnDeps, 'storage' | 'clock' | 'newId'>,
    Pick<SessionServiceDeps, 'now'>,
    Pick<SessionRemovalDeps, 'deletions' | 'cleanups'>,
    Pick<SessionServiceDeps, 'openRequests' | 'prefix' | 'recordReasoningDeltas' | 'authorization' | 'log'> {
  readonly owners: SessionAccess;
}

export interface SessionsFeature {
  readonly handlers: Handlers<typeof sessionOperations>;
  readonly store: SessionStore;
  readonly turns: SessionTurns;
  readonly access: SessionAccess;
  /** The history that a run would go on from; empty for a session that does not exist. */
  history(tenantId: string, sessionId: string): Promise<readonly ChatMessage[]>;
  /** The same for a caller: empty for a session that it may not see. */
  historyFor(tenantId: string, sessionId: string, caller: Principal): Promise<readonly ChatMessage[]>;
  /** Every message of a session as the API shows it; empty for one that does not exist. */
  publicMessages(tenantId: string, sessionId: string): Promise<readonly PublicMessage[]>;
  /** The writes that take sessions away in somebody else's transaction, and what comes after its commit. */
  erasure(rows: readonly SessionRow[]): Promise<{ statements: readonly Statement[]; done(): Promise<void> }>;
  /** Deletes a session that has not been written to since; false: it is in use, or has been. */
  removeUnused(tenantId: string, sessionId: string, updatedAt: number): Promise<boolean>;
  /** Frees what a process left that ended between the deletion of a session and that of its messages. */
  recover(): Promise<void>;
  close(): void;
}

export const sessionsFeature = (deps: SessionsDeps): SessionsFeature => {
  const { storage } = deps;
  const store = createSessionStore(storage);
  const branches = createSessionBranchStore(storage);
  const { owners: access } = deps;
  const turns = createSessionTurns({ storage, store, access, clock: deps.clock, newId: deps.newId });
  const removeRow = createSessionRemoval({ ...deps, store, branches, turns });
  return {
    handlers: sessionService({ ...deps, store, branches, access, removeRow }),
    store,
    turns,
    access,
    history: (tenantId, sessionId) => sessionHistory(store, tenantId, sessionId),
    historyFor: (tenantId, sessionId, caller) =>
      sessionHistory(store, tenantId, sessionId, (ownerId) => access.maySee(caller, ownerId)),
    async publicMessages(tenantId, sessionId) {
      const row = await store.get(tenantId, sessionId);
      if (row === undefined) return [];
      return (await store.messages(row)).map((message, sequence) => publicMessage(message, sequence, deps));
    },
    async erasure(rows) {
      const cleanups = await Promise.all(
        rows.flatMap((row) => deps.cleanups.map((cleanup) => cleanup(row.tenant_id, row.id))),
      );
      const statements = rows.flatMap((row) => [
        ...branches.removed(row, deps.now(), deps.newId()),
        ...deps.deletions.flatMap((deletion) => deletion(row.tenant_id, row.id)),
      ]);
      const done = async (): Promise<void> => {
        await branches.purge();
        for (const cleanup of cleanups) await cleanup();
      };
      return { statements, done };
    },
    async removeUnused(tenantId, sessionId, updatedAt) {
      const row = await store.get(tenantId, sessionId);
      return row?.updated_at === updatedAt && (await removeRow(row)) === 'removed';
    },
    async recover() {
      await branches.purge();
    },
    close: () => turns.close(),
  };
};
