import type { Handlers, Principal } from '../../core/context.ts';
import { createSessionAccess, type SessionAccess, type SessionOwnershipSettings } from './session-access.ts';
import { createSessionBranchStore } from './session-branches.store.ts';
import { type SessionTexts, sessionTexts } from './session-texts.ts';
import { createSessionTurns, type SessionTurnDeps, type SessionTurns } from './session-turns.ts';
import type { sessionOperations } from './sessions.operations.ts';
import { type SessionServiceDeps, sessionService } from './sessions.service.ts';
import { createSessionStore, type SessionStore } from './sessions.store.ts';

export { createSessionAccess, type SessionAccess } from './session-access.ts';
export { createSessionTurns, type SessionPlace, type SessionTurns } from './session-turns.ts';
export type { OpenRequests, SessionCleanup, SessionDeletion } from './sessions.service.ts';
export { createSessionStore, type SessionStore } from './sessions.store.ts';

export interface SessionsDeps
  extends Pick<SessionTurnDeps, 'storage' | 'now' | 'newId'>,
    Pick<
      SessionServiceDeps,
      'deletions' | 'cleanups' | 'openRequests' | 'prefix' | 'recordReasoningDeltas' | 'authorization' | 'log'
    > {
  readonly ownership: SessionOwnershipSettings;
}

export interface SessionsFeature {
  readonly handlers: Handlers<typeof sessionOperations>;
  readonly store: SessionStore;
  readonly turns: SessionTurns;
  readonly access: SessionAccess;
  /** Texts of a session's history as a run would send them; empty for a session that does not exist. */
  texts(tenantId: string, sessionId: string): Promise<SessionTexts>;
  /** The same for a caller: empty for a session that it may not see. */
  textsFor(tenantId: string, sessionId: string, caller: Principal): Promise<SessionTexts>;
  /** Frees what a process left that ended between the deletion of a session and that of its messages. */
  recover(): Promise<void>;
  close(): void;
}

export const sessionsFeature = (deps: SessionsDeps): SessionsFeature => {
  const { storage } = deps;
  const store = createSessionStore(storage);
  const branches = createSessionBranchStore(storage);
  const access = createSessionAccess(deps.ownership);
  const turns = createSessionTurns({ storage, store, access, now: deps.now, newId: deps.newId });
  return {
    handlers: sessionService({ ...deps, store, branches, turns, access }),
    store,
    turns,
    access,
    texts: (tenantId, sessionId) => sessionTexts(store, tenantId, sessionId),
    textsFor: (tenantId, sessionId, caller) =>
      sessionTexts(store, tenantId, sessionId, (ownerId) => access.maySee(caller, ownerId)),
    async recover() {
      await branches.purge();
    },
    close: () => turns.close(),
  };
};
