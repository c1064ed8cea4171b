import pg from 'pg';
import { classifyPostgres } from './failure.ts';

/** Makes the schema where it is missing: a user who may not make one can still have it. */
export const ensureSchema = async (queries: Pick<pg.ClientBase, 'query'>, schema: string): Promise<void> => {
  try {
    const { rows } = await queries.query('select 1 from pg_namespace where nspname = $1', [schema]);
    if (rows.length === 0) await queries.query(`create schema if not exists ${pg.escapeIdentifier(schema)}`);
  } catch (error) {
    // Two that start at once: the other one has made it.
    if (classifyPostgres(error) !== 'unique-violation') throw error;
  }
};
