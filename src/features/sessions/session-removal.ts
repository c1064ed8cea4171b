import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRow } from '../../db/tables.ts';
import type { SessionBranchStore } from './session-branches.store.ts';
import type { SessionStore } from './sessions.store.ts';
import type { SessionTurns } from './turns/index.ts';

/** Writes of other features that go with the deletion of a session, in its transaction. */
export type SessionDeletion = (tenantId: string, sessionId: string) => Statement | readonly Statement[];
/**
 * What another feature has to do outside of the store when a session goes. Asked before the deletion, while what is to
 * be looked up is still there; what it gives is done once the deletion is committed, and does not reject.
 */
export type SessionCleanup = (tenantId: string, sessionId: string) => Promise<() => Promise<void>>;
export interface SessionRemovalDeps {
  readonly storage: Storage;
  readonly store: SessionStore;
  readonly branches: SessionBranchStore;
  readonly turns: Pick<SessionTurns, 'busy'>;
  readonly deletions: readonly SessionDeletion[];
  readonly cleanups: readonly SessionCleanup[];
  /** Called when nothing waits for the session any more. */
  ended(tenantId: string, sessionId: string): void;
  readonly log: { warn(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly now: () => number;
  readonly newId: () => string;
}

/** Deletes a session with all that goes with it; `busy`: a run is queued or in progress, `gone`: it was not there. */
export type SessionRemoval = (row: SessionRow) => Promise<'removed' | 'busy' | 'gone'>;

export const createSessionRemoval = (deps: SessionRemovalDeps): SessionRemoval => {
  const { storage, store, branches } = deps;
  return async (row) => {
    if (deps.turns.busy(row.tenant_id, row.id)) return 'busy';
    const cleanups = await Promise.all(deps.cleanups.map((cleanup) => cleanup(row.tenant_id, row.id)));
    try {
      await storage.write([
        ...branches.removed(row, deps.now(), deps.newId()),
        ...deps.deletions.flatMap((deletion) => deletion(row.tenant_id, row.id)),
      ]);
    } catch (error) {
      if (!(error instanceof ConditionFailedError)) throw error;
      const current = await store.get(row.tenant_id, row.id);
      return current?.conversation_id === row.conversation_id ? 'busy' : 'gone';
    }
    // The session is gone with what makes its messages reachable; what cannot be freed now is freed at the next start.
    await branches.purge().catch((error: unknown) => {
      deps.log.warn({ sessionId: row.id, error }, 'The messages of a deleted session could not be freed yet');
    });
    for (const cleanup of cleanups) await cleanup();
    deps.ended(row.tenant_id, row.id);
    return 'removed';
  };
};
