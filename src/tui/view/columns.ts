import { fitText, padText, textWidth } from '../../text/text-width.ts';
import { type Line, line, listLine, type Span, span } from './line.ts';

export interface Column<Row> {
  readonly heading: string;
  /** Cells it takes; the one column with null takes what the others leave. */
  readonly width: number | null;
  readonly align?: 'right';
  /** Narrowest screen that shows it. */
  readonly from?: number;
  /** `cells` is the width that it has. */
  readonly cell: (row: Row, cells: number) => Span;
}

const gap = '  ';
const markWidth = 2;
const narrowestFill = 8;

const aligned = (text: string, width: number, align: 'right' | undefined): string => {
  const cut = fitText(text, width);
  return align === 'right' ? ' '.repeat(Math.max(0, width - textWidth(cut))) + cut : padText(cut, width);
};

/** The heading and a function for rows, laid out for a width. */
export const layOutColumns = <Row>(
  columns: readonly Column<Row>[],
  width: number,
): { readonly heading: Line; readonly row: (row: Row, selected: boolean) => Line } => {
  const shown = columns.filter(({ from = 0 }) => width >= from);
  const fixed = shown.reduce((sum, column) => sum + (column.width ?? 0), 0);
  const free = width - markWidth - fixed - gap.length * (shown.length - 1);
  const sized = shown.map((column) => ({ column, cells: column.width ?? Math.max(narrowestFill, free) }));
  const parts = (cellOf: (column: Column<Row>, cells: number) => Span): Span[] =>
    sized.flatMap(({ column, cells }, index) => {
      const { text, tone } = cellOf(column, cells);
      const cell = span(aligned(text, cells, column.align), tone);
      return index === 0 ? [cell] : [span(gap), cell];
    });
  return {
    heading: line(' '.repeat(markWidth), ...parts(({ heading }) => span(heading, 'dim'))),
    row: (row, selected) => listLine(selected, ...parts(({ cell }, cells) => cell(row, cells))),
  };
};
