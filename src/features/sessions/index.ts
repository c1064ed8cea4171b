import type { ChatMessage as PublicMessage } from '../../contract/chat-message.ts';
import type { Clock } from '../../core/clock.ts';
import type { Principal } from '../../core/context.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import { publicMessage } from '../../engine/context/index.ts';
import { sessionBranchStore } from './session-branches.store.ts';
import { createSessionRemoval, type SessionDeletion, type SessionRemovalDeps } from './session-removal.ts';
import { type SessionServiceDeps, sessionService } from './sessions.service.ts';
import type { SessionStore } from './sessions.store.ts';
import {
  createOwnSessionTurns,
  createSessionPauses,
  createSessionPlaces,
  createSharedSessionTurns,
  type Mailbox,
  type SessionAccess,
  type SessionWaits,
  type SharedSessionTurnDeps,
  sessionRequestStore,
} from './turns/index.ts';

export type { SessionCleanup, SessionDeletion, SessionErasure } from './session-removal.ts';
export { type SessionStore, sessionStore } from './sessions.store.ts';
export {
  answeredCalls,
  askedText,
  createQueuedPlaces,
  createSessionAccess,
  createSessionWaits,
  hasAnswers,
  type Mailbox,
  type Placed,
  type QueuedPlaces,
  refusedPart,
  rejection,
  responseMessage,
  type SessionAccess,
  type SessionPlaces,
  type SessionRequestStore,
  type SessionWaits,
  sessionRequestStore,
} from './turns/index.ts';

export interface SessionsDeps
  extends Pick<SessionRemovalDeps, 'deletions' | 'cleanups' | 'now' | 'newId'>,
    Pick<SessionServiceDeps, 'storage' | 'prefix' | 'recordReasoningDeltas' | 'authorization'> {
  readonly batch: Pick<BatchedWrites, 'write'>;
  /** Whether other processes have the store, too. */
  readonly shared: boolean;
  readonly announcements: Pick<Announcements, 'announce' | 'listen'>;
  readonly store: SessionStore;
  readonly owners: SessionAccess;
  readonly waits: SessionWaits;
  readonly lostTurn: NonNullable<SharedSessionTurnDeps['lostTurn']>;
  readonly mailbox: Mailbox;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly log: SessionServiceDeps['log'] & SharedSessionTurnDeps['log'];
}

export const sessionsFeature = (deps: SessionsDeps) => {
  const { storage, batch, store, mailbox, clock } = deps;
  const { requests, ends } = deps.waits;
  const { owners: access } = deps;
  const turnDeps = { ...deps, access };
  const turns = deps.shared ? createSharedSessionTurns(turnDeps) : createOwnSessionTurns(turnDeps);
  const pauses = createSessionPauses({ requests, mailbox, ends, now: deps.now, newId: deps.newId });
  const busy = deps.telemetry.metrics.counter(
    'acp.session.busy',
    'Runs that met a session which another run held.',
    '{run}',
    ['acp.session.concurrency'],
  );
  /** How runs come to sessions. */
  const places = createSessionPlaces({
    batch,
    turns,
    pauses,
    clock,
    busy: (concurrency) => busy.add(1, [concurrency]),
  });
  const dropRequests: SessionDeletion = (stores, ...session) => stores(sessionRequestStore).drop(...session);
  const deletions = [dropRequests, ...deps.deletions];
  const { remove, erasure } = createSessionRemoval({ ...deps, deletions, ended: ends.ended, turns });
  const history = async (
    tenantId: string,
    sessionId: string,
    maySee: (ownerId: string | null) => boolean = () => true,
  ): Promise<readonly ChatMessage[]> => {
    const row = await store.get(tenantId, sessionId);
    return row === undefined || !maySee(row.owner_id) ? [] : store.messages(row);
  };
  return {
    handlers: sessionService({ ...deps, access, removeRow: remove, openRequests: pauses.open }),
    store,
    places,
    access,
    /** The history that a run would go on from; empty for a session that does not exist. */
    history,
    /** The same for a caller: empty for a session that it may not see. */
    historyFor: (tenantId: string, sessionId: string, caller: Principal): Promise<readonly ChatMessage[]> =>
      history(tenantId, sessionId, (ownerId) => access.maySee(caller, ownerId)),
    /** Every message of a session as the API shows it; empty for one that does not exist. */
    async publicMessages(tenantId: string, sessionId: string): Promise<readonly PublicMessage[]> {
      const row = await store.get(tenantId, sessionId);
      if (row === undefined) return [];
      return (await store.messages(row)).map((message, sequence) => publicMessage(message, sequence, deps));
    },
    erasure,
    remove,
    /** Opens a session with the first messages of another one, whose owner has it; neither changes with the other. */
    async fork(source: SessionRow, id: string, count: number): Promise<void> {
      const at = deps.now();
      await storage.stores(sessionBranchStore).branch(source, {
        ...source,
        id,
        conversation_id: deps.newId(),
        version: 1,
        message_count: count,
        active_run_id: null,
        lock_until: null,
        last_run_id: null,
        created_at: at,
        updated_at: at,
        parent_session_id: source.id,
        parent_conversation_id: source.conversation_id,
        branch_from_sequence: count - 1,
        summary: null,
      });
    },
    /** Deletes a session that has not been written to since; false: it is in use, or has been. */
    async removeUnused(tenantId: string, sessionId: string, updatedAt: number): Promise<boolean> {
      const row = await store.get(tenantId, sessionId);
      return row?.updated_at === updatedAt && (await remove(row)) === 'removed';
    },
    leftovers: {
      sessionLocks: store.freeAll,
      // Of one that was deleted, and whose process ended before its messages were.
      deletedSessions: storage.stores(sessionBranchStore).purge,
    },
    close(): void {
      turns.close();
      ends.close();
    },
  };
};

export type SessionsFeature = ReturnType<typeof sessionsFeature>;
