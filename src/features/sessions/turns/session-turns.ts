import type { Principal } from '../../../core/context.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';

/** A lock that no one renews is free after this: a crashed instance must not hold a session for long. */
export const lockMs = 60_000;
// Three chances to renew before a lock lapses.
export const renewEveryMs = 20_000;
/** Runs that may wait for one session. */
export const maxWaiting = 16;

export interface WaitOrder {
  /** Before those that are not: for a run that stops the one in progress. */
  readonly ahead?: boolean;
  readonly bounded?: boolean;
}

export interface SessionPlace {
  /** From 1; 0 when the session was free. */
  readonly position: number;
  /** Resolves when the session is kept for this run to take; the signal gives the place up and rejects with its reason. */
  ready(signal: AbortSignal): Promise<void>;
  /** Gives up the place, or the session that was kept for it. */
  leave(): void | Promise<void>;
}

/** The run that has a session, or is to have it next. */
export interface SessionHolder {
  readonly runId: string;
  /** Whether it is a run of this process. */
  readonly isHere: boolean;
}

/** A promise only where the store has to be asked. */
type Asked<T> = T | Promise<T>;

/** One run at a time per session, and who comes next. */
export interface SessionTurns {
  /** True: another process may hold a session, so that a run which finds it free here can still have to wait. */
  readonly asksStore: boolean;
  /** The agent that the session belongs to; null for an id that no run has used. */
  agentOf(tenantId: string, sessionId: string): Promise<string | null>;
  /** Null: nobody that this process or the store knows. */
  holder(tenantId: string, sessionId: string): Asked<SessionHolder | null>;
  /** True while a run of this process holds the session; others may wait for it. */
  busyHere(tenantId: string, sessionId: string): boolean;
  /** True while a run holds the session, or waits for it, wherever it is. */
  busy(tenantId: string, sessionId: string): Asked<boolean>;
  /**
   * Whose a run of this caller will be: the owner of its session, which the caller may open or run on, or the caller
   * itself. Throws `session-owner-required` or `session-not-owned`.
   */
  ownerOf(tenantId: string, sessionId: string | null, caller: Principal): Asked<string | null>;
  /**
   * Takes the session for a run, reading its history. Throws `session-busy` when another run holds it, and what
   * `ownerOf` throws.
   */
  take(tenantId: string, sessionId: string, agentName: string, runId: string, caller: Principal): Promise<SessionTurn>;
  /** A place in line; a free session is the run's at once. A `bounded` one throws `session-queue-full`. */
  wait(tenantId: string, sessionId: string, runId: string, order: WaitOrder): Asked<SessionPlace>;
  close(): void;
}
