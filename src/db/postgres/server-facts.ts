import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';
import { checkPartitions, type PartitionFacts, partitionFacts } from './partition-facts.ts';
import { servingLock } from './serving-lock.ts';

/** What a server says of itself and of one schema. Bytes, milliseconds, numbers of connections. */
export interface ServerFacts extends PartitionFacts {
  readonly serverVersion: string;
  /** It follows another server, and takes no writes. */
  readonly isStandby: boolean;
  /** Processes of acp that serve the schema now. */
  readonly processes: number;
  readonly connections: {
    /** Of all programs, to all databases. */
    readonly used: number;
    /** Of these: of acp, to this database. */
    readonly ofService: number;
    /** What programs that are no superuser may take together. */
    readonly limit: number;
  };
  /** Servers that follow this one; the lag is null where this user may not see it, or there is none. */
  readonly standbys: readonly { readonly name: string; readonly state: string | null; readonly lagMs: number | null }[];
  /** How far the server's clock is ahead of this machine's, to within half a round trip. */
  readonly clockAheadMs: number;
  /** With indexes and what lies outside of the rows. */
  readonly tableBytes: Readonly<Record<string, number>>;
}

const clockAhead = async (db: Kysely<Tables>): Promise<number> => {
  const before = Date.now();
  const { rows } = await sql<{ now: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now`.execute(db);
  return Math.round((rows[0]?.now ?? 0) - (before + Date.now()) / 2);
};

const byName = (rows: readonly { readonly name: string; readonly value: number }[]): Record<string, number> =>
  Object.fromEntries(rows.map(({ name, value }) => [name, value]));

export const serverFacts = async (db: Kysely<Tables>, schema: string): Promise<ServerFacts> => {
  const { rows } = await sql<{ version: string; standby: number; used: number; own: number; most: number }>`
    select current_setting('server_version') as version, pg_is_in_recovery() as standby,
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
      (select count(*) from pg_stat_activity where datname = current_database() and application_name like 'acp%') as own,
      current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8
        - coalesce(current_setting('reserved_connections', true)::int8, 0) as most`.execute(db);
  const serving = await sql<{ count: number }>`
    select count(*) as count from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted and mode = 'ShareLock'
      and database = (select oid from pg_database where datname = current_database())
      and (classid::int8 << 32) | objid::int8 = hashtextextended(${servingLock(schema)}, 0)`.execute(db);
  const standbys = await sql<{ name: string; state: string | null; lag: number | null }>`
    select coalesce(application_name, '') as name, state,
      round(extract(epoch from replay_lag) * 1000)::int8 as lag from pg_stat_replication`.execute(db);
  const sizes = await sql<{ name: string; value: number }>`
    select coalesce(p.relname, c.relname) as name, sum(pg_total_relation_size(c.oid))::int8 as value
    from pg_class c
    left join pg_inherits i on i.inhrelid = c.oid
    left join pg_class p on p.oid = i.inhparent
    where c.relnamespace = quote_ident(${schema})::regnamespace and c.relkind in ('r', 'p')
    group by 1 order by 1`.execute(db);
  const { version = '', standby = 0, used = 0, own = 0, most = 0 } = rows[0] ?? {};
  return {
    serverVersion: version,
    isStandby: standby === 1,
    processes: serving.rows[0]?.count ?? 0,
    connections: { used, ofService: own, limit: most },
    standbys: standbys.rows.map(({ name, state, lag }) => ({ name, state, lagMs: lag })),
    clockAheadMs: await clockAhead(db),
    tableBytes: byName(sizes.rows),
    ...(await partitionFacts(db, schema)),
  };
};

const maxFindings = 100;

/**
 * What can be checked of a schema without rewriting it: indexes that are not valid, damage that the server has counted,
 * and, where the extension amcheck is installed, the structure of all indexes. `notes` names what could not be checked.
 */
export const checkServer = async (
  db: Kysely<Tables>,
  schema: string,
): Promise<{ readonly findings: readonly string[]; readonly notes: readonly string[] }> => {
  const apart = await checkPartitions(db, schema);
  const findings: string[] = [...apart.findings];
  const notes: string[] = [...apart.notes];
  const invalid = await sql<{ name: string }>`
    select x.relname as name from pg_index i join pg_class x on x.oid = i.indexrelid
    where x.relnamespace = quote_ident(${schema})::regnamespace and not (i.indisvalid and i.indisready) order by 1`.execute(
    db,
  );
  for (const { name } of invalid.rows)
    findings.push(`The index ${name} is not valid: build it again with \`reindex\`.`);
  const { rows } = await sql<{ checksums: string; failures: number | null }>`
    select current_setting('data_checksums') as checksums, checksum_failures as failures
    from pg_stat_database where datname = current_database()`.execute(db);
  const [{ checksums, failures } = { checksums: 'off', failures: null }] = rows;
  if ((failures ?? 0) > 0) findings.push(`The server has read ${failures} damaged pages of this database.`);
  if (checksums !== 'on')
    notes.push('The server keeps no checksums of its pages: damage on its disk may go unnoticed.');
  const amcheck = await sql<{ schema: string }>`
    select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace
    where e.extname = 'amcheck'`.execute(db);
  const [extension] = amcheck.rows;
  if (extension === undefined) {
    notes.push('The extension amcheck is not installed: the structure of indexes was not checked.');
    return { findings, notes };
  }
  const indexes = await sql<{ oid: number; name: string }>`
    select x.oid::int8 as oid, x.relname as name from pg_index i join pg_class x on x.oid = i.indexrelid
    join pg_am a on a.oid = x.relam
    where x.relnamespace = quote_ident(${schema})::regnamespace and x.relkind = 'i' and a.amname = 'btree' and i.indisvalid
    order by 2`.execute(db);
  const check = sql.id(extension.schema, 'bt_index_check');
  for (const { oid, name } of indexes.rows) {
    if (findings.length >= maxFindings) break;
    try {
      await sql`select ${check}(${oid}::oid)`.execute(db);
    } catch (error) {
      const code = (error as { cause?: { code?: string } }).cause?.code ?? (error as { code?: string }).code;
      if (code === '42501') {
        notes.push('This user may not use the extension amcheck: the structure of indexes was not checked.');
        break;
      }
      if (code !== 'XX001' && code !== 'XX002') throw error;
      findings.push(`The index ${name} is damaged.`);
    }
  }
  return { findings, notes };
};
