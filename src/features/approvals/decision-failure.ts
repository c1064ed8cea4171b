import { AcpError } from '../../contract/errors.ts';
import { ConditionFailedError } from '../../db/statement.ts';

/** What a decision that could not be stored is answered with (APPR-28); one that another overtook is its caller's to look at. */
export const notStored = (error: unknown): never => {
  if (error instanceof AcpError || error instanceof ConditionFailedError) throw error;
  throw new AcpError('store-unavailable', 'The decision could not be stored, and nothing was decided.', {
    cause: error,
    details: { retryAfterMs: 1000 },
  });
};
