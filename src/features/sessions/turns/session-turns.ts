import type { Principal } from '../../../core/context.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';

/**
 * A lock that no process renews is free after this. Other processes look each second, so that what a crashed process
 * held is free within 15 s.
 */
export const lockMs = 14_000;
// Three chances to renew before a lock lapses.
export const renewEveryMs = 4000;
/** Runs that may wait for one session. */
export const maxWaiting = 16;

export interface WaitOrder {
  /** Before those that are not: for a run that stops the one in progress. */
  readonly ahead?: boolean;
  readonly bounded?: boolean;
  /** For a run of a job: its place came with the job, and goes with its end. */
  readonly isQueued?: boolean;
}

export interface SessionPlace {
  /** From 1; 0 when the session was free. */
  readonly position: number;
  /**
   * Resolves when the session is kept for this run to take; the signal gives the place up and rejects with its reason.
   * Rejects with `notNext` for a queued run that is to leave its worker to others.
   */
  ready(signal: AbortSignal): Promise<void>;
  /** Gives up the place, or the session that was kept for it. */
  leave(): void | Promise<void>;
  /** Waits no more in this process; a queued run goes back in line with its job, and comes back to where it stood. */
  stepAside(): void;
}

/** The session is free, and whoever comes before the queued run does not take it: it may need the worker for that. */
export const notNext = new Error('Another run comes first, and waits for something else.');

/** The run that has a session, or is to have it next. */
export interface SessionHolder {
  readonly runId: string;
  /** Whether it is a run of this process. */
  readonly isHere: boolean;
  /** False: it has not taken the session yet, and whoever stops runs comes before it. */
  readonly hasSession: boolean;
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
  /**
   * A place in line; a free session is the run's at once. Who has stepped back waits again where it stood, as far as there
   * is a line with rows. A `bounded` one throws `session-queue-full`.
   */
  wait(tenantId: string, sessionId: string, runId: string, order: WaitOrder): Asked<SessionPlace>;
  /** Calls back once, when it is the turn of a queued run which `notNext` was told. */
  onTurn(tenantId: string, sessionId: string, runId: string, callBack: () => void): void;
  /** Called when a place may have gone with its run: lets in who waits behind it. */
  look(tenantId: string, sessionId: string): void;
  close(): void;
}
