import type BetterSqlite3 from 'better-sqlite3';
import type { Condense, UnitResult } from '../dialect.ts';
import { ConditionFailedError, type Statement } from '../statement.ts';
import type { StoreCondition } from '../store-condition.ts';
import { storedParameters } from '../stored-text.ts';
import type { StatementCache } from './driver.ts';

/** Units of the same moment in one transaction of the one connection, each all or nothing. */
export const createGroupCommit = (
  raw: BetterSqlite3.Database,
  cache: StatementCache,
  condition: Pick<StoreCondition, 'refusal' | 'failed'>,
) => {
  const runUnit = (unit: readonly Statement[]): number => {
    let changed = 0;
    for (const statement of unit) {
      const { changes } = cache.get(statement.sql).run(...storedParameters(statement.parameters));
      if (statement.mustChange === true && changes === 0) throw new ConditionFailedError(statement);
      changed += changes;
    }
    return changed;
  };

  const runGuarded = (unit: readonly Statement[]): UnitResult => {
    // A single statement is all or nothing by itself.
    if (unit.length === 1) {
      try {
        runUnit(unit);
        return { ok: true };
      } catch (error) {
        if (!raw.inTransaction) throw error;
        return { ok: false, error };
      }
    }
    cache.get('savepoint unit').run();
    try {
      runUnit(unit);
      cache.get('release unit').run();
      return { ok: true };
    } catch (error) {
      // A full disk or an I/O error rolls the whole transaction back by itself: then no unit was written.
      if (!raw.inTransaction) throw error;
      cache.get('rollback to unit').run();
      cache.get('release unit').run();
      return { ok: false, error };
    }
  };

  /** Alone in its transaction a unit needs no savepoint: it and the transaction are undone together. */
  const commitAlone = (unit: readonly Statement[]): UnitResult => {
    cache.get('begin immediate').run();
    try {
      runUnit(unit);
      cache.get('commit').run();
      return { ok: true };
    } catch (error) {
      if (raw.inTransaction) cache.get('rollback').run();
      condition.failed(error);
      return { ok: false, error };
    }
  };

  /** All units without savepoints; null: one of them failed, and nothing of any is written. */
  const commitTogether = (units: readonly (readonly Statement[])[], condense: Condense): UnitResult[] | null => {
    // Outside the try: whoever waited for another process's lock in vain does not wait a second time.
    cache.get('begin immediate').run();
    try {
      runUnit(condense(units.flat()));
      cache.get('commit').run();
      return units.map(() => ({ ok: true }));
    } catch {
      // Which unit it was, and what the others come to, is found out when each has its own savepoint.
      if (raw.inTransaction) cache.get('rollback').run();
      return null;
    }
  };

  const commitGuarded = (units: readonly (readonly Statement[])[]): UnitResult[] => {
    cache.get('begin immediate').run();
    try {
      const results = units.map(runGuarded);
      cache.get('commit').run();
      return results;
    } catch (error) {
      if (raw.inTransaction) cache.get('rollback').run();
      condition.failed(error);
      throw error;
    }
  };

  const commitNow = (units: readonly (readonly Statement[])[], condense: Condense): UnitResult[] => {
    if (condition.refusal !== null) throw condition.refusal;
    const [first] = units;
    if (first !== undefined && units.length === 1) return [commitAlone(first)];
    return commitTogether(units, condense) ?? commitGuarded(units);
  };

  return {
    /** In the open transaction; how many rows it changed. */
    runUnit,
    commitNow,
  };
};
