import { AcpError } from '../../../contract/errors.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Principal } from '../../../core/context.ts';
import type { BatchedWrites } from '../../../db/batched-writes.ts';
import { ConditionFailedError, type Statement } from '../../../db/statement.ts';
import type { Storage } from '../../../db/storage.ts';
import type { SessionRow } from '../../../db/tables/sessions.ts';
import type { ChatMessage } from '../../../engine/context/index.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';
import type { SessionStore } from '../sessions.store.ts';
import type { SessionAccess } from './session-access.ts';
import { busyError } from './session-conflict.ts';
import type { Place } from './session-places.store.ts';
import { lockMs } from './session-turns.ts';

export interface SessionLockDeps {
  readonly storage: Pick<Storage, 'dialect'>;
  readonly batch: Pick<BatchedWrites, 'write'>;
  readonly store: SessionStore;
  readonly access: SessionAccess;
  /** What is stored of the turn of a run whose process is gone. Absent: nothing ever is. */
  readonly lostTurn?: (tenantId: string, runId: string) => Promise<LostTurn>;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The turn of a lost run, and what is written with it. */
export interface LostTurn {
  readonly messages: readonly ChatMessage[];
  readonly statements: readonly Statement[];
}

/** A run that comes to a session, and who asked for it. */
export interface Taker {
  readonly tenantId: string;
  readonly sessionId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly caller: Principal;
}

/** Who has a session, and until when. */
export interface Lock {
  readonly active_run_id: string | null;
  readonly lock_until: number | null;
}

/** How the row of a session is locked; each unit fails where another run holds it. */
export interface LockWrites {
  open(session: SessionRow): readonly Statement[];
  /** Takes over a row that a run left behind before it saved a turn; null where no run can have. */
  readonly reopen: ((session: SessionRow) => readonly Statement[]) | null;
  lock(taker: Taker, now: number, lockUntil: number): readonly Statement[];
  /** What goes with a turn that is saved; null where nothing does. */
  readonly saved: ((taker: Place) => readonly Statement[]) | null;
  /** Frees the session; one that never had a turn goes. */
  release(taker: Place): readonly Statement[];
  /** The same for a run that keeps its place. */
  stepBack(taker: Place): readonly Statement[];
}

/** Who comes through a door goes on with what it opened there itself. */
const assertSameDoor = ({ door }: Principal, row: Pick<SessionRow, 'id' | 'door'>): void => {
  if (door !== undefined && row.door !== door.key)
    throw new AcpError('session-not-owned', `Session "${row.id}" belongs to somebody else.`);
};

/** The row of a session, which says who holds it. */
export const createSessionLocks = (deps: SessionLockDeps, writes: LockWrites) => {
  const { storage, batch, store, access, newId } = deps;
  const { now } = deps.clock;

  const opened = ({ tenantId, sessionId, agentName, runId, caller }: Taker): SessionRow => {
    const at = now();
    return {
      tenant_id: tenantId,
      id: sessionId,
      agent_name: agentName,
      owner_id: access.newOwner(caller),
      conversation_id: newId(),
      version: 0,
      message_count: 0,
      active_run_id: runId,
      lock_until: at + lockMs,
      last_run_id: null,
      created_at: at,
      updated_at: at,
      parent_session_id: null,
      parent_conversation_id: null,
      branch_from_sequence: null,
      summary: null,
      door: caller.door?.key ?? null,
    };
  };

  /** Another run opened or took the session in the same moment. */
  const lostRace = (error: unknown): boolean => {
    const failure = storage.dialect.classify(error instanceof AcpError ? error.cause : error);
    return failure === 'unique-violation' || failure === 'conflict';
  };

  const isLocked = ({ active_run_id, lock_until }: Lock): boolean =>
    active_run_id !== null && (lock_until ?? 0) >= now();

  /** Left behind in its first turn: as if it were not there. */
  const isVacant = (row: SessionRow): boolean => writes.reopen !== null && row.version === 0 && !isLocked(row);

  /** The writes that keep the turn of the run which left the session behind, once `runId` has it. */
  const lostTurnOf = async (row: SessionRow, runId: string): Promise<readonly Statement[]> => {
    const { active_run_id: lostRunId, tenant_id: tenantId } = row;
    if (deps.lostTurn === undefined || lostRunId === null || lostRunId === runId || isLocked(row)) return [];
    const { messages, statements } = await deps.lostTurn(tenantId, lostRunId);
    return messages.length === 0 ? [] : [...store.keepLostTurn(row, runId, lostRunId, messages, now()), ...statements];
  };

  /** `asking`: called before the first write that may take the row. */
  const lockRow = async (taker: Taker, asking: () => void): Promise<SessionRow> => {
    const { tenantId, sessionId, agentName, caller } = taker;
    const row = await store.get(tenantId, sessionId);
    if (row === undefined) {
      const session = opened(taker);
      asking();
      await batch.write(writes.open(session));
      return session;
    }
    const lost = await lostTurnOf(row, taker.runId);
    if (writes.reopen !== null && isVacant(row) && lost.length === 0) {
      const session = opened(taker);
      asking();
      await batch.write(writes.reopen(session));
      return session;
    }
    if (row.agent_name !== agentName)
      throw new AcpError('session-agent-mismatch', `Session "${sessionId}" belongs to agent "${row.agent_name}".`);
    access.assertMayRun(caller, sessionId, row.owner_id);
    assertSameDoor(caller, row);
    asking();
    // In one unit: the process that takes the session of a dead run stores its turn, and no other can.
    await batch.write([...writes.lock(taker, now(), now() + lockMs), ...lost]);
    // What is read after the lock was taken is what the turn goes on from.
    return (await store.get(tenantId, sessionId)) ?? row;
  };

  /**
   * Frees a row that was taken, or may have been, by a run that then could not read what it goes on from. Whoever comes back
   * to the session keeps its place in line.
   */
  const giveBack = async (taker: Taker, error: unknown): Promise<void> => {
    const endsRun = error instanceof AcpError && error.code === 'decryption-failed';
    await batch
      .write(endsRun ? writes.release(taker) : writes.stepBack(taker))
      // The store is away, which is told by what it was asked for first. Nobody renews the lock, and it lapses.
      .catch(() => undefined);
  };

  const storedOwner = async (tenantId: string, sessionId: string, caller: Principal): Promise<string | null> => {
    const row = await store.get(tenantId, sessionId);
    if (row === undefined || isVacant(row)) return access.newOwner(caller);
    access.assertMayRun(caller, sessionId, row.owner_id);
    return row.owner_id;
  };

  return {
    isLocked,
    async agentOf(tenantId: string, sessionId: string): Promise<string | null> {
      const row = await store.get(tenantId, sessionId);
      return row === undefined || isVacant(row) ? null : row.agent_name;
    },
    ownerOf(tenantId: string, sessionId: string | null, caller: Principal): Promise<string | null> | string | null {
      if (!access.enabled) return null;
      return sessionId === null ? access.callerOwner(caller) : storedOwner(tenantId, sessionId, caller);
    },
    /** Throws `session-busy` when another run holds the row. `ended`: called when the run has left the session. */
    async take(taker: Taker, ended: () => void): Promise<SessionTurn> {
      const { sessionId, runId } = taker;
      let mayHold = false;
      try {
        const row = await lockRow(taker, () => {
          mayHold = true;
        });
        const history = row.message_count === 0 ? [] : await store.messages(row);
        return {
          sessionId,
          history,
          summary: store.summary(row),
          save(messages, summary, at) {
            const turn = store.saveTurn(row, runId, messages, summary, at);
            return writes.saved === null ? turn : [...turn, ...writes.saved(taker)];
          },
          release: () => writes.release(taker),
          stepBack: () => writes.stepBack(taker),
          ended,
        };
      } catch (error) {
        if (error instanceof ConditionFailedError || lostRace(error)) throw busyError(sessionId);
        if (mayHold) await giveBack(taker, error);
        throw error;
      }
    },
  };
};

export type SessionLocks = ReturnType<typeof createSessionLocks>;
