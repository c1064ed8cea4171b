import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { sessionBranchStore } from './session-branches.store.ts';
import type { SessionStore } from './sessions.store.ts';
import type { SessionTurns } from './turns/index.ts';

/** What another feature deletes with a session, in the same unit of work. */
export type SessionDeletion = (stores: UnitOfWork, tenantId: string, sessionId: string) => Promise<void>;
/**
 * What another feature has to do outside of the store when a session goes. Asked before the deletion, while what is to
 * be looked up is still there; what it gives is done once the deletion is committed, and does not reject.
 */
export type SessionCleanup = (tenantId: string, sessionId: string) => Promise<() => Promise<void>>;
export interface SessionRemovalDeps {
  readonly storage: Pick<Storage, 'stores' | 'transaction'>;
  readonly store: SessionStore;
  readonly turns: Pick<SessionTurns, 'busy'>;
  readonly deletions: readonly SessionDeletion[];
  readonly cleanups: readonly SessionCleanup[];
  /** Called when nothing waits for the session any more. */
  ended(tenantId: string, sessionId: string): void;
  readonly log: { warn(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly now: () => number;
  readonly newId: () => string;
}

export interface SessionErasure {
  remove(stores: UnitOfWork): Promise<void>;
  /** After the commit: what is outside of the store. */
  done(): Promise<void>;
}

export const createSessionRemoval = (deps: SessionRemovalDeps) => {
  const { storage, store } = deps;
  const { purge } = storage.stores(sessionBranchStore);

  const erasure = async (rows: readonly SessionRow[], freeMessages = purge): Promise<SessionErasure> => {
    const cleanups = await Promise.all(
      rows.flatMap((row) => deps.cleanups.map((cleanup) => cleanup(row.tenant_id, row.id))),
    );
    return {
      async remove(stores) {
        for (const row of rows) {
          await stores(sessionBranchStore).remove(row, deps.now(), deps.newId());
          for (const deletion of deps.deletions) await deletion(stores, row.tenant_id, row.id);
        }
      },
      async done() {
        await freeMessages();
        for (const cleanup of cleanups) await cleanup();
        for (const row of rows) deps.ended(row.tenant_id, row.id);
      },
    };
  };

  return {
    /** The same for sessions that go in somebody else's unit, which fails when one of them is in use. */
    erasure: (rows: readonly SessionRow[]): Promise<SessionErasure> => erasure(rows),
    /** Deletes a session with all that goes with it; `busy`: a run is queued or in progress, `gone`: it was not there. */
    async remove(row: SessionRow): Promise<'removed' | 'busy' | 'gone'> {
      if (await deps.turns.busy(row.tenant_id, row.id)) return 'busy';
      // The session is gone with what makes its messages reachable; what cannot be freed now is freed at the next start.
      const freeLater = (error: unknown): number => {
        deps.log.warn({ sessionId: row.id, error }, 'The messages of a deleted session could not be freed yet');
        return 0;
      };
      const { remove, done } = await erasure([row], () => purge().catch(freeLater));
      try {
        await storage.transaction(remove);
      } catch (error) {
        if (!(error instanceof ConditionFailedError)) throw error;
        const current = await store.get(row.tenant_id, row.id);
        return current?.conversation_id === row.conversation_id ? 'busy' : 'gone';
      }
      await done();
      return 'removed';
    },
  };
};

export type SessionRemoval = ReturnType<typeof createSessionRemoval>;
