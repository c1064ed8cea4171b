import { AcpError } from '../../../contract/errors.ts';
import { RunFailure } from '../../../engine/run-failure.ts';

export const busyError = (sessionId: string): AcpError =>
  new AcpError('session-busy', `Session "${sessionId}" has a run in progress.`, { details: { retryAfterMs: 1000 } });

/** What a refusal of the session means to a run that was accepted already. That the store is away is none. */
export const failAsConflict = (error: unknown): never => {
  // What the turn leaves undecided could not be stored with its entry: the run waits as for the rest of the store.
  if (error instanceof AcpError && error.code === 'audit-unavailable')
    throw new AcpError('store-unavailable', error.message, { cause: error, details: error.details });
  if (!(error instanceof AcpError) || error.code === 'store-unavailable') throw error;
  throw new RunFailure('Infrastructure', 'session_conflict', error.message, { cause: error });
};

/** The run that has the session cannot be stopped from this instance. */
export const foreignHolder = (cause?: unknown): AcpError =>
  new AcpError('run-not-on-this-instance', 'The run in progress does not execute on this instance.', { cause });

/** The session is busy although no run holds it here: its run cannot be stopped from this instance. */
export const refuseForeignHolder = (error: unknown): never => {
  if (!(error instanceof AcpError) || error.code !== 'session-busy') throw error;
  throw foreignHolder(error);
};
