import { AcpError } from '../../contract/errors.ts';
import { ConditionFailedError } from '../../db/statement.ts';

/** Answers a decision that could not be stored (APPR-28). One that another decision overtook is left to the caller. */
export const notStored = (error: unknown): never => {
  if (error instanceof AcpError || error instanceof ConditionFailedError) throw error;
  throw new AcpError('store-unavailable', 'The decision could not be stored, and nothing was decided.', {
    cause: error,
    details: { retryAfterMs: 1000 },
  });
};
