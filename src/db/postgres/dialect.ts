import { type CompiledQuery, type Kysely, sql } from 'kysely';
import pg from 'pg';
import { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { SqlDialect, StoreSize } from '../dialect.ts';
import { ConditionFailedError, type Statement } from '../statement.ts';
import { namedTables, type Tables } from '../tables.ts';
import type { OnConnection, PostgresConnection } from './connection.ts';
import type { Connections } from './connections.ts';
import { postgresKyselyDialect } from './driver.ts';
import { classifyPostgres, isConflict, isCut } from './failure.ts';
import { createGroupCommit } from './group-commit.ts';
import { mergeDeletes } from './merged-deletes.ts';
import { createPartitions } from './partitions.ts';
import type { Sent } from './pipeline.ts';
import type { Replica } from './replica.ts';
import { describePostgresSchema, postgresNames } from './schema.ts';
import { storedColumns } from './stored-columns.ts';
import { resendMs } from './sure-sending.ts';
import { createUnansweredCommits } from './unanswered-commits.ts';

export interface PostgresDialectOptions {
  readonly connections: Connections;
  readonly schema: string;
  /** Reads over history go there first; null: there is none. */
  readonly replica?: Replica | null;
  /** How many groups of the batched path may be under way at once. Default: one. */
  readonly lanes?: number;
  /** Whether the last writes were refused by a server that only answers reads. Default: none was. */
  readonly refusesWrites?: () => boolean;
  readonly log: Pick<Logger, 'error' | 'warn'>;
  /** Work that no other process does at the same time. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
}

const notAFile = (what: string): AcpError =>
  new AcpError('feature-not-available', `${what} is for a store in a file; see the tools of PostgreSQL.`);

// A deadlock ends one of two, so that the other goes on; that one comes out right when it is tried again.
const maxAttempts = 5;

const repeated = async <T>(work: () => Promise<T>, isPassing: (error: unknown) => boolean): Promise<T> => {
  for (let attempt = 1; ; attempt += 1)
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error) || attempt === maxAttempts) throw error;
    }
};

// What changes nothing when it is done twice can be asked for again, whatever became of the first answer.
const isAskedAgain = (error: unknown): boolean => isConflict(error) || isCut(error);

const sent = ({ sql, parameters }: Statement): Sent => ({ sql, parameters, returns: false });

/** PostgreSQL through node-postgres: a pool of connections, unnamed statements, nothing that a session would keep. */
export const createPostgresDialect = ({
  connections,
  schema,
  replica = null,
  lanes = 1,
  refusesWrites = () => false,
  log,
  exclusive,
}: PostgresDialectOptions): SqlDialect => {
  const { outage } = connections;
  const quoted = (name: string): string => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;

  const on = async <T>(
    work: (connection: PostgresConnection) => Promise<T>,
    wait?: { readonly patient: boolean },
  ): Promise<T> => {
    const connection = await connections.acquire(wait);
    try {
      return await work(connection);
    } finally {
      connection.release();
    }
  };

  // It has a patience of its own.
  const onConnection: OnConnection = (work) => on(work, { patient: false });
  const outcomeOf = createUnansweredCommits(onConnection, outage, log);
  const commit = createGroupCommit(onConnection, outage, lanes, outcomeOf);

  /** In the open transaction of the connection; how many rows they changed. */
  const execute = async (connection: PostgresConnection, statements: readonly Statement[]): Promise<number> => {
    if (statements.length === 0) return 0;
    const answers = await connection.execute(statements.map(sent));
    let changed = 0;
    for (const [index, statement] of statements.entries()) {
      const rows = answers[index]?.rowCount ?? 0;
      if (statement.mustChange === true && rows === 0) throw new ConditionFailedError(statement);
      changed += rows;
    }
    return changed;
  };

  const read = async ({ sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>): Promise<readonly unknown[]> =>
    repeated(
      () => on(async (connection) => (await connection.execute([{ sql, parameters }]))[0]?.rows ?? []),
      isAskedAgain,
    );

  const size = async (): Promise<StoreSize> => {
    const [row] = await read({
      sql: `select coalesce(sum(pg_total_relation_size(oid)), 0) as bytes from pg_class
        where relnamespace = quote_ident($1)::regnamespace and relkind in ('r', 'm', 'S')`,
      parameters: [schema],
    });
    return { totalBytes: (row as { bytes: number }).bytes, walBytes: 0 };
  };

  return {
    name: 'postgres',
    kysely: postgresKyselyDialect(connections, schema),
    plugins: [postgresNames(schema, namedTables)],
    qualifiedName: (name) => name,
    clusteredTableSuffix: '',
    readsJsonText: false,
    jsonMemberIn: (column, member, texts) =>
      sql`cast(${sql.ref(column)} as json) ->> ${sql.lit(member)} in (select json_array_elements_text(cast(${JSON.stringify(texts)} as json)))`,
    jsonElements: (column) => sql`json_array_elements(cast(${sql.ref(column)} as json))`,
    jsonMember: (element, member, type) => sql`cast(${sql.ref(element)} ->> ${sql.lit(member)} as ${sql.raw(type)})`,
    lanes: { most: lanes, commit, hasten: outage.end },
    commitUnits: async (units, condense = (statements) => statements) => Promise.all(await commit(units, condense)),
    exchange: (statements) =>
      repeated(
        () => on(async (connection) => (await connection.executeWhole(statements)).map(({ rows }) => rows)),
        statements.every(({ isRepeatable }) => isRepeatable === true) ? isAskedAgain : isConflict,
      ),
    write: (db, statements) =>
      db
        .getExecutor()
        .provideConnection((connection) => execute(connection as PostgresConnection, mergeDeletes(statements))),
    scan: read,
    readAll: (queries) =>
      repeated(
        () => on(async (connection) => (await connection.execute(queries)).map(({ rows }) => rows)),
        isAskedAgain,
      ),
    ...(replica !== null && { replica }),
    async readTime() {
      const [row] = await read({ sql: 'select extract(epoch from clock_timestamp()) * 1000 as now', parameters: [] });
      return (row as { now: number }).now;
    },
    async probeWrite() {
      // Of a size that needs new room where the store lies; a change of a row finds its own on a full disk, too.
      await read({
        sql: `create temporary table room on commit drop as
          select string_agg(md5(random()::text), '') as bytes from generate_series(1, 1000)`,
        parameters: [],
      });
    },
    classify: classifyPostgres,
    readsPastLocks: true,
    isConflict,
    isCut,
    // A standby that stays one is no outage: what is not recorded there goes on.
    isAway: () => outage.isKnown || (refusesWrites() && outage.wasLostWithin(resendMs)),
    outcomeOf,
    // It finds out by itself, by autovacuum.
    describeSelectivity: async () => undefined,
    refreshSelectivity: async () => undefined,
    withMigrationLock: exclusive,
    columnsOf: (db: Kysely<Tables>, table) => storedColumns(db, schema, table),
    describeSchema: (db: Kysely<Tables>) => describePostgresSchema(db, schema),
    deleteChunk: (table, keyColumn, condition, limit) =>
      on(async (connection) => {
        const [answer] = await connection.execute([
          {
            sql: `delete from ${quoted(table)} where "${keyColumn}" in (select "${keyColumn}" from ${quoted(table)}
              where "${condition.column}" < $1 order by "${keyColumn}" limit $2)`,
            parameters: [condition.below, limit],
          },
        ]);
        return answer?.rowCount ?? 0;
      }),
    partitions: createPartitions({ on, schema, log }),
    backup: () => Promise.reject(notAFile('A copy of the whole store')),
    check: async () => [],
    walBacklogBytes: async () => 0,
    checkpoint: size,
    size,
    freePages: async () => ({ free: 0, total: 0 }),
    releasePages: async () => 0,
    overwriteDeleted() {
      throw notAFile('Overwriting what is deleted');
    },
    rebuild: () => Promise.reject(notAFile('Writing the whole store anew')),
    async close() {
      await Promise.all([connections.close(), replica?.close()]);
    },
  };
};
