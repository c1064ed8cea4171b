import { type Tables, tableNames } from '../tables.ts';

/** Written by the migrations at each end, which are compared before anything is copied. */
const ownRows: readonly (keyof Tables)[] = ['schema_migrations'];

/** Every table but that. */
export const movedTables = tableNames.filter((table) => !ownRows.includes(table));
