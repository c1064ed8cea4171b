import { clusters } from './clusters.ts';

/** Ranges of East Asian wide and fullwidth code points (Unicode Standard Annex 11), which fill two terminal cells. */
const wideRanges: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18aff],
  [0x1b000, 0x1b2ff],
  [0x20000, 0x3fffd],
];

const emoji = /\p{Emoji_Presentation}|\ufe0f/u;
const invisible = /^[\p{Mark}\p{Default_Ignorable_Code_Point}]+$/u;
const ascii = /^[\x20-\x7e]*$/;

const clusterWidth = (cluster: string): number => {
  if (invisible.test(cluster)) return 0;
  if (emoji.test(cluster)) return 2;
  const point = cluster.codePointAt(0) ?? 0;
  return wideRanges.some(([first, last]) => point >= first && point <= last) ? 2 : 1;
};

/** Terminal cells that a text fills; it must not hold control characters. */
export const textWidth = (text: string): number => {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const { segment } of clusters(text)) width += clusterWidth(segment);
  return width;
};

/** As many as fit, beside an ellipsis, into `width` cells. */
const fitting = (segments: Iterable<Intl.SegmentData>, width: number): string[] => {
  const clustersThatFit: string[] = [];
  let used = 0;
  for (const { segment } of segments) {
    used += clusterWidth(segment);
    if (used > width - 1) break;
    clustersThatFit.push(segment);
  }
  return clustersThatFit;
};

/** Cuts a text to at most `width` cells, with an ellipsis where something is missing. Never splits a character. */
export const fitText = (text: string, width: number): string =>
  textWidth(text) <= width ? text : `${fitting(clusters(text), width).join('')}…`;

/** The same from the other side: the end is kept. */
export const fitTextEnd = (text: string, width: number): string =>
  textWidth(text) <= width
    ? text
    : `…${fitting([...clusters(text)].reverse(), width)
        .reverse()
        .join('')}`;

export const padText = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - textWidth(text)));

// Escape sequences and direction marks in names, answers or errors could rewrite what the screen shows.
const controls = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Text that came from elsewhere, safe for a terminal: control characters but line feed and tab become `�`. */
export const safeText = (text: string): string => text.replaceAll('\r\n', '\n').replace(controls, '\ufffd');

/** The same on one line, for tables. */
export const safeLine = (text: string): string => safeText(text).replace(/[\n\t]+/g, ' ');

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A line with every character that shows nothing or steers the terminal as an escape: all of it is seen. */
export const visibleLine = (text: string): string =>
  text.replace(unseen, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
