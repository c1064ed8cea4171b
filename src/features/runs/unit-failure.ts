import { AcpError } from '../../contract/errors.ts';
import type { SqlDialect } from '../../db/dialect.ts';
import type { UnitFailure } from '../../engine/record/index.ts';

/** Why a store did not take a unit of a run. */
export const unitFailure =
  ({ classify }: Pick<SqlDialect, 'classify'>) =>
  (error: unknown): UnitFailure => {
    const failure = classify(error);
    if (failure === 'unique-violation') return 'taken';
    return failure !== null || (error instanceof AcpError && error.code === 'store-unavailable') ? 'away' : null;
  };
