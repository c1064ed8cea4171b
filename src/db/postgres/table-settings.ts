import type { Tables } from '../tables.ts';

// As the migration that made the first ones has set them; docs/design/postgresql.md has the reasons.
const settings = [
  ...['autovacuum_freeze_min_age = 0', 'autovacuum_vacuum_scale_factor = 0.5'],
  ...['toast.autovacuum_freeze_min_age = 0', 'toast.autovacuum_vacuum_scale_factor = 0.5'],
];

const fillFactors: Readonly<Partial<Record<keyof Tables, number>>> = { tool_invocations: 80 };

/** What a new partition of a table is created with. */
export const partitionSettings = (table: keyof Tables): string => {
  const fill = fillFactors[table] === undefined ? [] : [`fillfactor = ${fillFactors[table]}`];
  return `with (${[...settings, ...fill].join(', ')})`;
};
