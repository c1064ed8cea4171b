import type { Statement } from '../statement.ts';
import type { StoreCondition } from '../store-condition.ts';
import { storedParameters } from '../stored-text.ts';
import type { StatementCache } from './driver.ts';

/** The rows of each statement, all of them in one transaction; whoever calls has the connection to themselves. */
export const exchangeRows = (
  cache: StatementCache,
  condition: Pick<StoreCondition, 'refusal' | 'failed'>,
  statements: readonly Statement[],
): readonly (readonly unknown[])[] => {
  if (condition.refusal !== null) throw condition.refusal;
  cache.get('begin immediate').run();
  try {
    const rows = statements.map(({ sql, parameters }) => {
      const statement = cache.get(sql);
      const values = storedParameters(parameters);
      if (statement.reader) return statement.all(...values);
      statement.run(...values);
      return [];
    });
    cache.get('commit').run();
    return rows;
  } catch (error) {
    if (cache.inTransaction) cache.get('rollback').run();
    condition.failed(error);
    throw error;
  }
};
