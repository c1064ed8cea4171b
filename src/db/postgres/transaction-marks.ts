import type { ClientBase } from 'pg';
import type { Answer, Sent } from './pipeline.ts';
import { recogniseSession } from './session-statements.ts';

/** By what a transaction is asked for on another connection. */
export interface TransactionMark {
  /** With its epoch, so that it does not come around. */
  readonly id: string;
  /** The history of the server in which the id is that of this transaction alone; null: it did not say. */
  readonly history: string | null;
}

/**
 * The timeline, and when the server began to count what it does, which it does anew after each crash. A crash may lose the id
 * of a transaction that was under way, and a standby that takes over may never have had it: both give it to somebody else.
 * Neither is so after an orderly restart, over which both of these stay. Null while it follows another server.
 */
export const historySql = `(select case when pg_catalog.pg_is_in_recovery() then null else
  left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) || ' ' || extract(epoch from stats_reset)
  end as history from pg_catalog.pg_stat_bgwriter)`;

const idSql = 'select pg_catalog.pg_current_xact_id_if_assigned()::text as id';
const [idOfSession, idAndHistory]: readonly [Sent, Sent] = [
  { sql: idSql, parameters: [] },
  { sql: `${idSql}, ${historySql} as history`, parameters: [] },
];

/** Of connections whose server tells its history; null: it has to be asked for with each transaction. */
const histories = new WeakMap<ClientBase, { readonly ofSession: string | null }>();

/** Finds out where the connection leads, and whether transactions can be asked for there. */
export const recogniseServer = async (client: ClientBase): Promise<void> => {
  const isSession = await recogniseSession(client);
  const { rows } = await client.query<{ history: string | null }>(`select ${historySql} as history`);
  const history = rows[0]?.history ?? null;
  // A server that becomes the primary under its sessions is known by its next ones.
  if (history !== null) histories.set(client, { ofSession: isSession ? history : null });
};

/** What tells the mark of the transaction that is open, once it has written; null: it is not known to be told there. */
export const markOf = (client: ClientBase): Sent | null => {
  const known = histories.get(client);
  if (known === undefined) return null;
  return known.ofSession === null ? idAndHistory : idOfSession;
};

/** Null: it has written nothing so far. */
export const readMark = (client: ClientBase, { rows }: Answer): TransactionMark | null => {
  const [row] = rows as readonly { readonly id: string | null; readonly history?: string | null }[];
  if (row === undefined || row.id === null) return null;
  return { id: row.id, history: row.history ?? histories.get(client)?.ofSession ?? null };
};
