import { clusters } from './clusters.ts';
import { textWidth } from './text-width.ts';

/** Pieces of a word that is wider than a row. */
const chop = (word: string, width: number): string[] => {
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const { segment } of clusters(word)) {
    const own = textWidth(segment);
    if (used + own > width && piece !== '') {
      pieces.push(piece);
      piece = '';
      used = 0;
    }
    piece += segment;
    used += own;
  }
  pieces.push(piece);
  return pieces;
};

const fold = (text: string, width: number): string[] => {
  const rows: string[] = [];
  let row = '';
  let used = 0;
  for (const token of text.match(/\s+|\S+/g) ?? []) {
    const own = textWidth(token);
    if (used + own <= width) {
      row += token;
      used += own;
      continue;
    }
    if (row.trim() !== '') rows.push(row.trimEnd());
    row = '';
    used = 0;
    // White space at the place of a break is the break.
    if (/^\s/.test(token)) continue;
    const pieces = chop(token, width);
    rows.push(...pieces.slice(0, -1));
    row = pieces.at(-1) ?? '';
    used = textWidth(row);
  }
  if (row.trim() !== '' || rows.length === 0) rows.push(row.trimEnd());
  return rows;
};

/** Rows that go on below the first one's beginning, where that leaves at least half of the width. */
const wrapOne = (text: string, width: number): string[] => {
  if (textWidth(text) <= width) return [text];
  const indent = text.match(/^ */)?.[0] ?? '';
  if (indent.length * 2 > width) return fold(text, width);
  return fold(text.slice(indent.length), width - indent.length).map((row) => indent + row);
};

/** Rows of at most `width` cells, broken at white space where there is some. The text is safe for a terminal. */
export const wrapText = (text: string, width: number): string[] =>
  text
    .replaceAll('\t', '  ')
    .split('\n')
    .flatMap((row) => wrapOne(row, Math.max(1, width)));
