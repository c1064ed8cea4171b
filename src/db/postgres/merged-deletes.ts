import type { Statement } from '../statement.ts';

/** A deletion by conditions on columns of one table, each compared with a parameter of its own. */
interface Shape {
  readonly table: string;
  readonly conditions: readonly { readonly column: string; readonly comparison: string }[];
}

const deletion =
  /^delete from ("(?:[^"]|"")+"\."(?:[^"]|"")+") where \(?("(?:[^"]|"")+" (?:=|>=) \$\d+(?: and "(?:[^"]|"")+" (?:=|>=) \$\d+)*)\)?$/;
const condition = /("(?:[^"]|"")+") (=|>=) \$(\d+)/g;

const shapeOf = (sql: string): Shape | null => {
  const [, table, text] = deletion.exec(sql) ?? [];
  if (table === undefined || text === undefined) return null;
  const found = [...text.matchAll(condition)];
  if (found.some(([, , , position], index) => Number(position) !== index + 1)) return null;
  return { table, conditions: found.map(([, column = '', comparison = '']) => ({ column, comparison })) };
};

// A statement of lists is planned anew for each of its lengths, which a few rows do not make up for.
const fewest = 8;

/** A list as the server reads one. */
const listText = (values: readonly unknown[]): string =>
  `{${values.map((value) => (typeof value === 'number' ? value : `"${String(value).replaceAll(/["\\]/g, '\\$&')}"`)).join(',')}}`;

const arrayTypes: Readonly<Record<string, string>> = { string: 'text[]', number: 'int8[]' };

/** Byte order, which is that of text in every column. */
const inBytes = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Null: their values are of no kind that lists are made of. */
const together = ({ table, conditions }: Shape, statements: readonly Statement[]): Statement | null => {
  const lists = conditions.map((_, index) => statements.map(({ parameters }) => parameters[index]));
  const types = lists.map(([first]) => arrayTypes[typeof first]);
  const isOne = lists.every((list) => list.every((value) => typeof value === typeof list[0]));
  const [first] = conditions;
  if (!isOne || types.includes(undefined) || first === undefined) return null;
  const unnested = types.map((type, index) => `$${index + 1}::${type}`).join(', ');
  const names = conditions.map((_, index) => `v${index}`).join(', ');
  const matches = conditions.map(({ column, comparison }, index) => `x.${column} ${comparison} gone.v${index}`);
  const parameters: unknown[] = lists.map(listText);
  const bounds: string[] = [];
  const [keys = []] = lists;
  if (first.comparison === '=' && typeof keys[0] === 'string') {
    // The first of them and the last one: with these the server leaves out the partitions where none of them is.
    const sorted = (keys as string[]).toSorted(inBytes);
    bounds.push(`x.${first.column} between $${parameters.push(sorted[0])} and $${parameters.push(sorted.at(-1))}`);
  }
  return {
    sql: `delete from ${table} as x using unnest(${unnested}) as gone(${names}) where ${[...bounds, ...matches].join(' and ')}`,
    parameters,
  };
};

/** Equal deletions, however many, as one statement each in the place of the first. Other statements leave all as it is. */
export const mergeDeletes = (statements: readonly Statement[]): readonly Statement[] => {
  if (statements.length < fewest) return statements;
  const groups = Map.groupBy(statements, ({ sql }) => sql);
  if (groups.size === statements.length) return statements;
  const merged: Statement[] = [];
  for (const [sql, group] of groups) {
    const shape = shapeOf(sql);
    // What else is written may be about the same rows, before or after they go.
    if (shape === null || group.some(({ mustChange }) => mustChange === true)) return statements;
    const one = group.length < fewest ? null : together(shape, group);
    if (one === null) merged.push(...group);
    else merged.push(one);
  }
  return merged;
};
