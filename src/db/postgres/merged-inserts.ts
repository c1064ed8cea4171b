import type { Statement } from '../statement.ts';

/** What the text of a statement says about it. */
interface Shape {
  /** `insert into … values ` and nothing after the one row of values; null: it is something else. */
  readonly insert: { readonly head: string; readonly columns: number } | null;
  /** Qualified names of all tables in it. */
  readonly tables: ReadonlySet<string>;
}

const insertOfOneRow = /^(insert into ("[^"]+"\."[^"]+") \([^()]*\) values )\((\$\d+(?:, \$\d+)*)\)$/;
const qualifiedName = /"[^"]+"\."[^"]+"/g;

const shapeOf = (sql: string): Shape => {
  const [, head = '', , values = ''] = insertOfOneRow.exec(sql) ?? [];
  return {
    insert: head === '' ? null : { head, columns: values.split(',').length },
    tables: new Set(sql.match(qualifiedName)),
  };
};

// The hot log has few texts; the bound is against text that varies with the length of lists.
const maxShapes = 500;
const shapes = new Map<string, Shape>();

const shape = (sql: string): Shape => {
  const known = shapes.get(sql);
  if (known !== undefined) return known;
  if (shapes.size >= maxShapes) shapes.clear();
  const made = shapeOf(sql);
  shapes.set(sql, made);
  return made;
};

// The protocol counts parameters in 16 bits.
const maxParameters = 65_000;

/** Rows that are inserted by one statement, in the place of the first of them. */
interface Rows {
  readonly position: number;
  readonly statements: Statement[];
  readonly columns: number;
  readonly tables: ReadonlySet<string>;
}

const together = ({ statements, columns }: Rows, head: string): Statement => {
  const row = (index: number) =>
    `(${Array.from({ length: columns }, (_, column) => `$${index * columns + column + 1}`).join(', ')})`;
  return {
    sql: head + statements.map((_, index) => row(index)).join(', '),
    parameters: statements.flatMap(({ parameters }) => parameters),
  };
};

/**
 * Equal inserts of a group as one statement of many rows. One moves before what was between, unless that names its table:
 * a row that is deleted and inserted anew stays in that order.
 */
export const mergeInserts = (statements: readonly Statement[]): readonly Statement[] => {
  const open = new Map<string, Rows>();
  const merged: (Statement | null)[] = [...statements];
  const close = (sql: string, rows: Rows): void => {
    open.delete(sql);
    const head = shape(sql).insert?.head;
    if (rows.statements.length > 1 && head !== undefined) merged[rows.position] = together(rows, head);
  };
  for (const [position, statement] of statements.entries()) {
    const { sql, mustChange, isShared } = statement;
    const { insert, tables } = shape(sql);
    const rows = open.get(sql);
    const isPlain = insert !== null && mustChange !== true && isShared !== true;
    if (isPlain && rows !== undefined && (rows.statements.length + 1) * insert.columns <= maxParameters) {
      rows.statements.push(statement);
      merged[position] = null;
      continue;
    }
    for (const [other, group] of open)
      if (other === sql || (!isPlain && !tables.isDisjointFrom(group.tables))) close(other, group);
    if (isPlain) open.set(sql, { position, statements: [statement], columns: insert.columns, tables });
  }
  for (const [sql, rows] of open) close(sql, rows);
  return merged.filter((statement) => statement !== null);
};
