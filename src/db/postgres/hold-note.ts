import pg from 'pg';

/** What a store says while a move has it, and after: it is there for every process, whatever becomes of the move. */
export interface HoldNote {
  /** Where the store goes, without credentials. */
  readonly target: string;
  /** Process and machine of the move. */
  readonly holder: string;
  /** Epoch milliseconds. */
  readonly since: number;
  /** `Moved`: the rows are at the target, and what was written here later would not be. */
  readonly state: 'Moving' | 'Moved';
}

/** What queries go through: a connection, or a pool of them. */
type Queries = Pick<pg.ClientBase, 'query'>;

// Not one of the tables of a store: it is there for as long as the hold.
const tableOf = (schema: string): string => `${pg.escapeIdentifier(schema)}.store_hold`;

/** Whether there is a note, without reading it. */
export const heldQuery = (schema: string) => ({
  sql: 'select to_regclass($1) is not null as held',
  parameters: [tableOf(schema)],
});

/** What that was answered, as a pool of the service reads booleans, and as a plain connection does. */
export const isHeld = (rows: readonly unknown[] = []): boolean => Number((rows[0] as { held?: unknown })?.held) === 1;

/** Null: the store is not held. */
export const readHoldNote = async (queries: Queries, schema: string): Promise<HoldNote | null> => {
  const { sql, parameters } = heldQuery(schema);
  if (!isHeld((await queries.query(sql, parameters)).rows)) return null;
  const { rows } = await queries.query(`select target, holder, since, state from ${tableOf(schema)}`);
  const [row] = rows;
  return row === undefined ? null : { ...row, since: Number(row.since) };
};

export const writeHoldNote = async (
  queries: Queries,
  schema: string,
  { target, holder, since, state }: HoldNote,
): Promise<void> => {
  await queries.query(`create table if not exists ${tableOf(schema)}
    (only_one int primary key check (only_one = 1), target text not null, holder text not null, since bigint not null,
     state text not null)`);
  await queries.query(
    `insert into ${tableOf(schema)} values (1, $1, $2, $3, $4) on conflict (only_one) do update
     set target = excluded.target, holder = excluded.holder, since = excluded.since, state = excluded.state`,
    [target, holder, since, state],
  );
};

export const removeHoldNote = async (queries: Queries, schema: string): Promise<void> => {
  await queries.query(`drop table if exists ${tableOf(schema)}`);
};

/** Why nothing is written, and what ends it. */
export const holdWords = ({ target, holder, since, state }: HoldNote): string => {
  const at = new Date(since).toISOString();
  return state === 'Moved'
    ? `The store was moved to ${target} (by ${holder}, since ${at}): what is written here would be missing there. To use it again in spite of that, run \`acp db move --release\`.`
    : `The store is held for a move to ${target} (by ${holder}, since ${at}): it answers reads only. If that move is gone, run the same \`acp db move --hold\` again, which goes on with it, or give it up with \`acp db move --release\`.`;
};
