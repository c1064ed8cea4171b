import type { AcpError } from '../../contract/errors.ts';
import type { SqlDialect } from '../dialect.ts';
import type { StoreCondition } from '../store-condition.ts';
import { createSqliteDialect } from './dialect.ts';
import { classifySqlite } from './failure.ts';
import { openFailure } from './store-location.ts';

/** What the settings of a store say about its file. */
interface FileOptions {
  readonly tablePrefix: string;
  readonly synchronous: 'Normal' | 'Full';
  readonly commandTimeoutMs: number;
}

// The driver waits for a lock inside a call that stops the event loop. Only a foreign program can hold one for long.
const longestBusyMs = 5000;

/** Opens a file, or with null a database in memory. Throws `store-unavailable` with the path and the reason. */
export const createDialect = (
  options: FileOptions,
  path: string | null,
  readonly: boolean,
  condition?: StoreCondition,
  exclusive = false,
): SqlDialect => {
  try {
    return createSqliteDialect(
      {
        path,
        tablePrefix: options.tablePrefix,
        synchronous: options.synchronous,
        busyTimeoutMs: Math.min(options.commandTimeoutMs, longestBusyMs),
        readonly,
        exclusive,
      },
      condition,
    );
  } catch (error) {
    throw openFailure(path ?? ':memory:', error, 'store', classifySqlite(error));
  }
};

/** On a full disk a store can still be read, and written as soon as there is room, by one connection alone. */
export const openDialect = (options: FileOptions, path: string, condition: StoreCondition): SqlDialect => {
  try {
    return createDialect(options, path, false, condition);
  } catch (error) {
    const { cause } = error as AcpError;
    if (classifySqlite(cause) !== 'full') throw error;
    const dialect = createDialect(options, path, false, condition, true);
    condition.failed(cause);
    return dialect;
  }
};
