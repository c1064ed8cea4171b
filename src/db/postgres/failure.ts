import { systemCode } from '../../core/files/system-code.ts';
import type { StoreFailure } from '../dialect.ts';
import { isOutdatedPlan } from './outdated-plan.ts';
import type { TransactionMark } from './transaction-marks.ts';

/** The connection was cut: what was under way may be done or not. */
export class ConnectionLostError extends Error {
  /** SQLSTATE 08006, connection_failure. */
  readonly code = '08006';

  constructor(cause: unknown) {
    super('The connection to PostgreSQL was lost.', { cause });
    this.name = 'ConnectionLostError';
  }
}

/** The server could not be reached, so that nothing was asked of it. */
export class NotConnectedError extends Error {
  /** SQLSTATE 08001, sqlclient_unable_to_establish_sqlconnection. */
  readonly code = '08001';

  constructor(cause: unknown) {
    super('No connection to PostgreSQL could be made.', { cause });
    this.name = 'NotConnectedError';
  }
}

/** The connection was cut while a transaction was committed: its answer does not tell whether it was. */
export class CommitInDoubtError extends Error {
  /** SQLSTATE 08007, transaction_resolution_unknown. */
  readonly code = '08007';
  /** By what the server can be asked; null: nobody can tell. */
  readonly mark: TransactionMark | null;

  constructor(cause: unknown, mark: TransactionMark | null = null) {
    super('The connection to PostgreSQL was lost before it said whether a transaction is committed.', { cause });
    this.name = 'CommitInDoubtError';
    this.mark = mark;
  }
}

/** All connections of this process were in use for as long as somebody waited for one. */
export class NoFreeConnectionError extends Error {
  readonly code = 'NO_FREE_CONNECTION';

  constructor() {
    super('No connection to PostgreSQL became free in time.');
    this.name = 'NoFreeConnectionError';
  }
}

// SQLSTATE, appendix A of PostgreSQL's manual: a code of five characters, or its class by the first two.
const failures: Readonly<Record<string, StoreFailure>> = {
  '23505': 'unique-violation',
  // A NUL byte, in a text or as an escape in JSON.
  '22021': 'unstorable-text',
  '22P05': 'unstorable-text',
  '53100': 'full',
  '25006': 'read-only',
  // feature_not_supported: a standby has no serializable transactions, and but for outdated plans nothing else is refused so.
  '0A000': 'read-only',
  '55P03': 'busy',
  '40': 'conflict',
  '57014': 'slow',
  // Out of connections or memory.
  '53': 'unavailable',
  '08': 'unavailable',
  '08007': 'in-doubt',
  '28': 'unavailable',
  '3D': 'unavailable',
  '57P': 'unavailable',
  '25P03': 'unavailable',
  '58': 'unavailable',
  XX001: 'corrupt',
  XX002: 'corrupt',
  NO_FREE_CONNECTION: 'slow',
  ECONNREFUSED: 'unavailable',
  ECONNRESET: 'unavailable',
  EPIPE: 'unavailable',
  ETIMEDOUT: 'unavailable',
  EHOSTUNREACH: 'unavailable',
  ENETUNREACH: 'unavailable',
  ENOTFOUND: 'unavailable',
  EAI_AGAIN: 'unavailable',
  // The socket of a server on this machine.
  ENOENT: 'unavailable',
};

/** What a driver error means, by its code. */
export const classifyPostgres = (error: unknown): StoreFailure => {
  if (isOutdatedPlan(error)) return 'conflict';
  const code = systemCode(error);
  return failures[code] ?? failures[code.slice(0, 3)] ?? failures[code.slice(0, 2)] ?? null;
};

// serialization_failure, deadlock_detected: both leave nothing behind, and come out right when they are tried again.
// The last one: a pooler has lent the connection to another session of the server, where a statement is not kept.
const conflicts: ReadonlySet<string> = new Set(['40001', '40P01', '26000']);

/** The transaction has lost against another one: it left nothing behind, and may be repeated. */
export const isConflict = (error: unknown): boolean =>
  conflicts.has(systemCode(error)) ||
  isOutdatedPlan(error) ||
  (error instanceof Error && error.cause !== undefined && isConflict(error.cause));

// connection_failure, the server's own ends, and what a pooler says of the connection that it has lost.
const cuts: ReadonlySet<string> = new Set(['08006', '08P01', '57P01', '57P02']);

/** A connection was cut under what was asked on it. Before its commit a transaction has left nothing behind. */
export const isCut = (error: unknown): boolean => {
  if (!(error instanceof Error) || error instanceof CommitInDoubtError) return false;
  return cuts.has(systemCode(error)) || isCut(error.cause);
};
