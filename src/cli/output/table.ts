import { formatValue, memberAt, shortTime } from '../../text/format.ts';
import type { Style } from '../../text/style.ts';
import { fitText, padText, safeLine, textWidth } from '../../text/text-width.ts';

const gap = 2;
const narrowest = 6;

/**
 * `usage.totalTokens` → `TOKENS`; the `type` of an `error` keeps its parent, since its own name says too little, and the names
 * of `models` are the models.
 */
const heading = (column: string): string => {
  const parts = column.split('.');
  const name = parts.at(-1) ?? '';
  const parent = parts.at(-2);
  if (name === 'name' && parent?.endsWith('s') === true) return parent.toUpperCase();
  const words = parent !== undefined && ['type', 'name', 'id'].includes(name) ? `${parent} ${name}` : name;
  return words
    .replace(/^total(?=[A-Z])/, '')
    .replace(/Ms$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toUpperCase();
};

/** One column as text: its heading, then a cell for each row. */
type Column = readonly string[];

const widthOf = (column: Column): number => Math.max(...column.map(textWidth));
const totalWidth = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + gap * (widths.length - 1);

const isEmpty = ([, ...cells]: Column): boolean => cells.every((cell) => cell === '-');
const localTime = /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/;

/** Columns with less in them, as far as the width asks for it: without those that say nothing, then with short times. */
const condense = (columns: readonly Column[], available: number, now: Date): readonly Column[] => {
  const fits = (candidates: readonly Column[]): boolean => totalWidth(candidates.map(widthOf)) <= available;
  if (fits(columns)) return columns;
  const filled = columns.filter((column, index) => index === 0 || !isEmpty(column));
  if (fits(filled)) return filled;
  return filled.map((column) => column.map((cell) => (localTime.test(cell) ? shortTime(cell, now) : cell)));
};

/**
 * Takes cells away until the columns fit: first from headings that are wider than what is below them, then from the
 * widest column. The first one is never cut: it holds the id or name that is copied.
 */
const shrink = (columns: readonly Column[], available: number): number[] => {
  const widths = columns.map(widthOf);
  const needed = columns.map(([, ...cells]) => Math.max(narrowest, widthOf(cells)));
  const excess = (index: number): number => (widths[index] ?? 0) - (needed[index] ?? 0);
  const cuttable = widths.map((_width, index) => index).slice(1);
  while (totalWidth(widths) > available) {
    const [widest] = cuttable.toSorted(
      (a, b) => Math.max(0, excess(b)) - Math.max(0, excess(a)) || (widths[b] ?? 0) - (widths[a] ?? 0),
    );
    const width = widest === undefined ? 0 : (widths[widest] ?? 0);
    if (widest === undefined || width <= narrowest) break;
    widths[widest] = width - 1;
  }
  return widths;
};

export interface TableOptions {
  readonly style: Style;
  /** Terminal cells to fill at most; absent: rows are never cut. */
  readonly width?: number | undefined;
}

/** Aligned columns below a heading, each line ended by a line feed. */
export const renderTable = (rows: readonly unknown[], members: readonly string[], options: TableOptions): string => {
  const { style, width: available = Number.POSITIVE_INFINITY } = options;
  const full = members.map(
    (member): Column => [heading(member), ...rows.map((row) => safeLine(formatValue(member, memberAt(row, member))))],
  );
  const columns = condense(full, available, new Date());
  const widths = shrink(columns, available);
  const line = (row: number): string =>
    columns
      .map((column, index) => padText(fitText(column[row] ?? '', widths[index] ?? 0), widths[index] ?? 0))
      .join(' '.repeat(gap))
      .trimEnd();
  return [style.bold(line(0)), ...rows.map((_row, index) => line(index + 1))].map((text) => `${text}\n`).join('');
};

/** Columns of rows that declare none: the scalar members of the first row. */
export const scalarColumns = (rows: readonly unknown[]): string[] => {
  const [first] = rows;
  if (typeof first !== 'object' || first === null) return [];
  return Object.entries(first)
    .filter(([, value]) => value === null || typeof value !== 'object')
    .map(([name]) => name);
};
