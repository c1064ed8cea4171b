import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { systemCode } from '../../core/files/system-code.ts';
import type { Logger } from '../../core/logger.ts';
import type { Partition, StorePartitions } from '../partitions.ts';
import type { PostgresConnection } from './connection.ts';
import {
  type AbsentPartition,
  absentPartitions,
  isPast,
  type PartitionedTable,
  parseRange,
  partitionedTables,
  readPartitions,
  type StoredPartition,
  timeOf,
} from './partition-ranges.ts';
import type { Answer, Sent } from './pipeline.ts';
import { partitionSettings } from './table-settings.ts';

interface PartitionsOptions {
  readonly on: <T>(work: (connection: PostgresConnection) => Promise<T>) => Promise<T>;
  readonly schema: string;
  readonly log: Pick<Logger, 'error' | 'warn'>;
}

// Who waits for a lock has all that come later wait behind it; group commit gives itself as long for a lock of others.
const lockMs = 100;
const attempts = 5;
const betweenMs = 100;
// Partitions are made a whole width ahead: one that is not there so long before it is needed has met an obstacle.
const noticeMs = 86_400_000;
// Rows that came before their partition are moved into it while nobody else may write where they are.
const mostMoved = 1000;

const lockNotAvailable = '55P03';
const divisionByZero = '22012';
const checkViolation = '23514';
const queryCanceled = '57014';
// duplicate_table, and the unique violation of two that make it at the same moment.
const madeByAnother: ReadonlySet<string> = new Set(['42P07', '23505']);

class TooManyRowsError extends Error {
  constructor(name: string) {
    super(`More than ${mostMoved} rows of ${name} are in the default partition already: they stay there.`);
    this.name = 'TooManyRowsError';
  }
}

const statement = (text: string, parameters: readonly unknown[] = []): Sent => ({ sql: text, parameters });
const quoted = pg.escapeIdentifier;
const literal = pg.escapeLiteral;

/** Fails where the query has a row, by itself: the transaction ends, with no answer waited for. */
const unlessAny = ({ sql: text, parameters }: Pick<Sent, 'sql' | 'parameters'>): Sent =>
  statement(`select 1 / (case when exists (${text}) then 0 else 1 end)`, parameters);

const lockBound = statement(`select set_config('lock_timeout', $1, true)`, [String(lockMs)]);

/** Each piece of work is one transaction in one message: no lock waits for this process. */
export const createPartitions = ({ on, schema, log }: PartitionsOptions): StorePartitions => {
  const named = (name: string): string => `${quoted(schema)}.${quoted(name)}`;
  const whole = (statements: readonly Sent[]): Promise<readonly Answer[]> =>
    on((connection) => connection.executeWhole([lockBound, ...statements]));

  const read = async <T>(text: string, parameters: readonly unknown[] = []): Promise<readonly T[]> => {
    const [answer] = await on((connection) => connection.execute([statement(text, parameters)]));
    return (answer?.rows ?? []) as T[];
  };

  const stored = (): Promise<readonly StoredPartition[]> => read<StoredPartition>(readPartitions, [schema]);

  const wanted = async (nowMs: number, laterMs: (entry: PartitionedTable) => number) =>
    absentPartitions(await stored(), (entry) => [nowMs, nowMs + laterMs(entry)]);

  const inRange = ({ column }: PartitionedTable, { from, below }: AbsentPartition): string =>
    `${quoted(column)} >= ${literal(from)} and ${quoted(column)} < ${literal(below)}`;

  /** As a table of its own that is attached then: to make it in its place would stop every writer of the table. */
  const made = (partition: AbsentPartition, between: readonly Sent[] = []): Sent[] => {
    const { entry, name, from, below } = partition;
    return [
      statement(
        `create table ${named(name)} (like ${named(entry.table)} including all) ${partitionSettings(entry.table)}`,
      ),
      ...between,
      statement(
        `alter table ${named(entry.table)} attach partition ${named(name)} for values from (${literal(from)}) to (${literal(below)})`,
      ),
    ];
  };

  const withRowsMoved = async (partition: AbsentPartition): Promise<void> => {
    const { entry, name, other } = partition;
    if (other === null) throw new Error(`The rows that keep ${name} from being made are nowhere.`);
    const rows = `${named(other)} where ${inRange(entry, partition)}`;
    if ((await read(`select 1 from ${rows} limit ${mostMoved + 1}`)).length > mostMoved)
      throw new TooManyRowsError(name);
    await whole([
      statement(`lock table ${named(other)} in access exclusive mode`),
      ...made(partition, [
        statement(`with moved as (delete from ${rows} returning *) insert into ${named(name)} select * from moved`),
      ]),
    ]);
  };

  const make = async (partition: AbsentPartition): Promise<void> => {
    for (let attempt = 1; ; attempt += 1)
      try {
        return await whole(made(partition)).then(
          () => undefined,
          (error: unknown) => {
            if (systemCode(error) === checkViolation) return withRowsMoved(partition);
            throw error;
          },
        );
      } catch (error) {
        const code = systemCode(error);
        if (madeByAnother.has(code)) return;
        if (code !== lockNotAvailable || attempt === attempts) throw error;
        await pause(betweenMs * attempt * Math.random());
      }
  };

  let missing: readonly string[] = [];
  const told = new Set<string>();
  let preparing: Promise<void> | null = null;

  const look = async (nowMs: number): Promise<void> => {
    const now = (await wanted(nowMs, () => noticeMs)).map(({ name }) => name);
    if (now.length > 0 && now.join() !== missing.join())
      log.error({ partitions: now }, 'Partitions of the present are not there: their rows go to the default ones');
    if (now.length === 0 && missing.length > 0) log.warn({}, 'All partitions of the present are there again');
    missing = now;
  };

  const makeAll = async (nowMs: number): Promise<void> => {
    for (const partition of await wanted(nowMs, ({ widthMs }) => widthMs))
      try {
        await make(partition);
        told.delete(partition.name);
      } catch (error) {
        if (!told.has(partition.name))
          log.warn({ partition: partition.name, error }, 'A partition could not be made yet; it is tried again');
        told.add(partition.name);
      }
  };

  const unread = (error: unknown): void => log.error({ error }, 'The partitions of the store could not be read');

  const past = async (nowMs: number): Promise<readonly Partition[]> =>
    (await stored())
      .flatMap(({ table, name, bounds }): Partition[] => {
        const range = parseRange(bounds);
        const entry = partitionedTables.find((candidate) => candidate.table === table);
        if (range === null || entry === undefined || !isPast(range, nowMs)) return [];
        return [{ table: entry.table, column: entry.column, name, ...range, endsAt: timeOf(range.below) }];
      })
      .sort((one, other) => (one.below === other.below ? 0 : one.below < other.below ? -1 : 1));

  const isEmpty = async ({ name }: Partition): Promise<boolean> =>
    (await read(`select 1 from ${named(name)} limit 1`)).length === 0;

  /** True: it is gone. A partition is dropped under a lock of its whole table, which is why nobody waits for it long. */
  const drop = async ({ table, name }: Partition): Promise<boolean> => {
    try {
      await whole([
        statement(`lock table only ${named(table)} in access exclusive mode`),
        statement(`lock table ${named(name)} in access exclusive mode`),
        unlessAny(statement(`select 1 from ${named(name)}`)),
        statement(`drop table ${named(name)}`),
      ]);
      return true;
    } catch (error) {
      const code = systemCode(error);
      if (code === lockNotAvailable || code === divisionByZero) return false;
      throw error;
    }
  };

  return {
    prepare(nowMs) {
      preparing ??= makeAll(nowMs)
        .then(() => look(nowMs))
        .catch(unread)
        .finally(() => {
          preparing = null;
        });
      return preparing;
    },
    look: (nowMs) => look(nowMs).catch(unread),
    missing: () => missing,
    past,
    async empty(partitions, stays, also) {
      const names = partitions.map(({ name }) => named(name)).join(', ');
      try {
        const answers = await whole([
          // Readers go on; who writes, or empties the same, waits.
          statement(`lock table ${names} in share row exclusive mode`),
          ...stays.map(unlessAny),
          ...also.map(({ sql: text, parameters }) => statement(text, parameters)),
          statement(`truncate table ${names}`),
        ]);
        const before = 2 + stays.length;
        return { isEmptied: true, rows: answers.slice(before, before + also.length).map(({ rows }) => rows) };
      } catch (error) {
        const code = systemCode(error);
        if (code === divisionByZero) return { isEmptied: false, why: 'stays' };
        if (code === lockNotAvailable || code === queryCanceled) return { isEmptied: false, why: 'busy' };
        throw error;
      }
    },
    async dropEmpty(nowMs) {
      const dropped: string[] = [];
      for (const partition of await past(nowMs))
        if ((await isEmpty(partition)) && (await drop(partition))) dropped.push(partition.name);
      return dropped;
    },
    identifier: (name) => sql.id(schema, name),
  };
};
