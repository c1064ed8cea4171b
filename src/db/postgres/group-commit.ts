import { systemCode } from '../../core/files/system-code.ts';
import type { Condense, UnitResult } from '../dialect.ts';
import { ConditionFailedError, type Statement } from '../statement.ts';
import type { OnConnection, PostgresConnection } from './connection.ts';
import { mergeInserts } from './merged-inserts.ts';
import type { Outage } from './outage.ts';
import type { Sent } from './pipeline.ts';
import { createSureSending, type Manner } from './sure-sending.ts';
import type { CommitOutcome } from './unanswered-commits.ts';

type Unit = readonly Statement[];
type UnitEnd = UnitResult | Promise<UnitResult>;

/** How one transaction of several units ended. `culprit`: position of the unit that it failed for, where that is known. */
type GroupEnd =
  | { readonly ok: true }
  | { readonly ok: false; readonly error: unknown; readonly culprit: number | null; readonly isLost: boolean };

// A lock that somebody holds elsewhere is waited for by those alone that need it, and not by all of the moment.
const groupLockMs = 100;
const aloneLockMs = 5000;
const divisionByZero = '22012';
const lockNotAvailable = '55P03';
// Each round of a group that meets a lock costs the time above; after these the rest waits, too.
const maxLockRounds = 3;

// Fails by itself where nothing was changed: the transaction ends before its commit, with no answer waited for.
const checked = (sql: string): string =>
  `with changed as (${sql}${/\breturning\b/i.test(sql) ? '' : ' returning 1'}) select 1 / count(*) from changed`;

const checkedTexts = new Map<string, string>();
const maxTexts = 500;

const checkedText = (sql: string): string => {
  const known = checkedTexts.get(sql);
  if (known !== undefined) return known;
  if (checkedTexts.size >= maxTexts) checkedTexts.clear();
  const text = checked(sql);
  checkedTexts.set(sql, text);
  return text;
};

// What a group writes is found by its keys: one plan does for all values, of statements that come several times, too.
const lockBound = (ms: number): Sent => ({
  sql: `select set_config('lock_timeout', $1, true), set_config('plan_cache_mode', 'force_generic_plan', true)`,
  parameters: [String(ms)],
  returns: false,
});

const sent = ({ sql, parameters, mustChange }: Statement): Sent => ({
  sql: mustChange === true ? checkedText(sql) : sql,
  parameters,
  returns: false,
});

/** Work of which no more than so many pieces are under way at once; the others are in line. */
const bounded = (most: number) => {
  const line: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running < most) running += 1;
    else await new Promise<void>((resolve) => line.push(resolve));
    try {
      return await work();
    } finally {
      const next = line.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
};

/**
 * Commits units of the same moment in one transaction of one round trip. Where it fails the unit that it failed for is
 * written alone, and those before and after it again together, so that each is all or nothing, the order stands, and
 * nobody fails for another one.
 */
export const createGroupCommit = (
  onConnection: OnConnection,
  outage: Outage,
  mostWaiting: number,
  outcomeOf: (error: unknown) => Promise<CommitOutcome>,
) => {
  const waiting = bounded(mostWaiting);
  const send = async (
    connection: PostgresConnection,
    statements: readonly Statement[],
    { lockMs, isMarked }: Manner,
  ): Promise<void> => {
    const all = [lockBound(lockMs), ...statements.map(sent)];
    await (isMarked ? connection.executeMarked(all) : connection.executeWhole(all));
  };
  const transaction = createSureSending(onConnection, outage, send, outcomeOf);

  const alone = async (unit: Unit, condense: Condense, lockMs = aloneLockMs): Promise<UnitResult> => {
    const end = await transaction(condense(unit), unit, lockMs);
    if (end === null) return { ok: true };
    const { error, failed } = end;
    const isCondition = systemCode(error) === divisionByZero && failed?.mustChange === true;
    return { ok: false, error: isCondition ? new ConditionFailedError(failed) : error };
  };

  const together = async (units: readonly Unit[], condense: Condense, merge: boolean): Promise<GroupEnd> => {
    const all = units.flat();
    const statements = condense(all);
    const end = await transaction(merge ? mergeInserts(statements) : statements, all, groupLockMs);
    if (end === null) return { ok: true };
    const { error, failed, isLost } = end;
    const culprit = failed === null ? -1 : units.findIndex((unit) => unit.includes(failed));
    return { ok: false, error, culprit: culprit === -1 ? null : culprit, isLost };
  };

  /** Those of the units that wait for the lock go their own way, each by itself; the others are committed without them. */
  const pastLock = async (
    units: readonly Unit[],
    condense: Condense,
    culprit: number | null,
    round: number,
  ): Promise<readonly UnitEnd[]> => {
    const waits = (unit: Unit, index: number): boolean =>
      round > maxLockRounds || (culprit === null ? unit.some(({ isShared }) => isShared === true) : index === culprit);
    const late = new Set(units.filter(waits));
    // Nobody is to blame for a lock of the commit itself.
    if (late.size === 0) for (const unit of units) late.add(unit);
    const rest = units.filter((unit) => !late.has(unit));
    const ends = (await commit(rest, condense, round + 1)).values();
    return units.map((unit) =>
      late.has(unit) ? waiting(() => alone(unit, condense)) : (ends.next().value ?? { ok: true }),
    );
  };

  /** Known only for what was not inserted together with others. */
  const attributed = async (units: readonly Unit[], condense: Condense): Promise<GroupEnd> => {
    const end = await together(units, condense, true);
    return end.ok || end.isLost || end.culprit !== null ? end : together(units, condense, false);
  };

  const onlyOne = async (unit: Unit, condense: Condense): Promise<UnitEnd> => {
    const end = await alone(unit, condense, groupLockMs);
    const isLocked = !end.ok && systemCode(end.error) === lockNotAvailable;
    return isLocked ? waiting(() => alone(unit, condense)) : end;
  };

  const apart = async (
    units: readonly Unit[],
    condense: Condense,
    culprit: number | null,
    round: number,
  ): Promise<readonly UnitEnd[]> => {
    const results: UnitEnd[] = [];
    if (culprit === null) {
      for (const unit of units) results.push(await alone(unit, condense));
      return results;
    }
    results.push(...(await commit(units.slice(0, culprit), condense, round)));
    results.push(await alone(units[culprit] as Unit, condense));
    results.push(...(await commit(units.slice(culprit + 1), condense, round)));
    return results;
  };

  const commit = async (units: readonly Unit[], condense: Condense, round = 1): Promise<readonly UnitEnd[]> => {
    const [first] = units;
    if (first === undefined) return [];
    if (units.length === 1) return [await onlyOne(first, condense)];
    const end = await attributed(units, condense);
    if (end.ok) return units.map(() => ({ ok: true }));
    const { error, culprit, isLost } = end;
    if (isLost) return units.map(() => ({ ok: false, error }));
    const others = systemCode(error) === lockNotAvailable ? pastLock : apart;
    return others(units, condense, culprit, round);
  };
  return (units: readonly Unit[], condense: Condense): Promise<readonly UnitEnd[]> => commit(units, condense);
};
