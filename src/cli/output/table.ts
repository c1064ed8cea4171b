import { formatValue, memberAt } from './format.ts';
import type { Style } from './style.ts';
import { fitText, padText, safeLine, textWidth } from './text-width.ts';

const GAP = 2;
const NARROWEST = 6;

/** `usage.totalTokens` → `TOTAL TOKENS`; a member of `error` or `model` keeps the parent, its own name says too little. */
const heading = (column: string): string => {
  const parts = column.split('.');
  const name = parts.at(-1) ?? '';
  const parent = parts.at(-2);
  const words = parent !== undefined && ['type', 'name', 'id'].includes(name) ? `${parent} ${name}` : name;
  return words
    .replace(/Ms$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toUpperCase();
};

/** Takes from the widest column first, never from the first one: it holds the id or name that is copied. */
const shrink = (widths: number[], available: number): void => {
  const total = (): number => widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1);
  while (total() > available) {
    const widest = widths.indexOf(Math.max(...widths.slice(1)), 1);
    const width = widths[widest];
    if (widest < 1 || width === undefined || width <= NARROWEST) return;
    widths[widest] = width - 1;
  }
};

export interface TableOptions {
  readonly style: Style;
  /** Terminal cells to fill at most; absent: rows are never cut. */
  readonly width?: number | undefined;
}

/** Aligned columns below a heading, each line ended by a line feed. */
export const renderTable = (rows: readonly unknown[], columns: readonly string[], options: TableOptions): string => {
  const cells = rows.map((row) => columns.map((column) => safeLine(formatValue(column, memberAt(row, column)))));
  const head = columns.map(heading);
  const widths = head.map((text, column) =>
    Math.max(textWidth(text), ...cells.map((row) => textWidth(row[column] ?? ''))),
  );
  if (options.width !== undefined) shrink(widths, options.width);
  const line = (row: readonly string[]): string =>
    row
      .map((text, column) => {
        const width = widths[column] ?? 0;
        return column === row.length - 1 ? fitText(text, width) : padText(fitText(text, width), width);
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  return [options.style.bold(line(head)), ...cells.map(line)].map((text) => `${text}\n`).join('');
};

/** Columns of rows that declare none: the scalar members of the first row. */
export const scalarColumns = (rows: readonly unknown[]): string[] => {
  const [first] = rows;
  if (typeof first !== 'object' || first === null) return [];
  return Object.entries(first)
    .filter(([, value]) => value === null || typeof value !== 'object')
    .map(([name]) => name);
};
