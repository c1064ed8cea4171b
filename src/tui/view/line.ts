import { fitText, textWidth } from '../../text/text-width.ts';

/** What a part of a line means; the colours that stand for it are chosen where it is drawn. */
export type Tone = 'plain' | 'strong' | 'dim' | 'good' | 'bad' | 'warn' | 'accent';

export interface Span {
  readonly text: string;
  readonly tone: Tone;
}

/** One row of the screen. Its texts are safe for a terminal by then. */
export interface Line {
  readonly spans: readonly Span[];
  readonly selected: boolean;
}

/** Marks the chosen row, also where there are no colours. */
const selectionMark = '▸ ';
const noMark = '  ';

export const span = (text: string, tone: Tone = 'plain'): Span => ({ text, tone });

export const line = (...parts: readonly (Span | string)[]): Line => ({
  spans: parts.map((part) => (typeof part === 'string' ? span(part) : part)),
  selected: false,
});

export const blank: Line = line();

/** A row of a list: with a mark where it is the chosen one. */
export const listLine = (selected: boolean, ...parts: readonly (Span | string)[]): Line => ({
  spans: [span(selected ? selectionMark : noMark), ...line(...parts).spans],
  selected,
});

export const lineText = ({ spans }: Line): string => spans.map(({ text }) => text).join('');

const spansWidth = (spans: readonly Span[]): number => spans.reduce((sum, { text }) => sum + textWidth(text), 0);

const cutSpans = (spans: readonly Span[], width: number): Span[] => {
  const cut: Span[] = [];
  let left = width;
  for (const { text, tone } of spans) {
    const own = textWidth(text);
    if (own <= left) cut.push({ text, tone });
    else {
      if (left > 0) cut.push({ text: fitText(text, left), tone });
      break;
    }
    left -= own;
  }
  return cut;
};

/** Exactly `width` cells: cut with an ellipsis, or filled with spaces. */
export const fitLine = ({ spans, selected }: Line, width: number): Line => {
  const cut = cutSpans(spans, width);
  const missing = width - spansWidth(cut);
  return { spans: missing > 0 ? [...cut, span(' '.repeat(missing))] : cut, selected };
};

/** One part at the left edge, one at the right; where both do not fit, the left one is cut. */
export const spreadLine = (left: readonly Span[], right: readonly Span[], width: number): Line => {
  const own = spansWidth(right);
  if (own + 2 > width) return fitLine(line(...left), width);
  return line(...fitLine(line(...left), width - own).spans, ...right);
};

/** `─ Title ─────────── note ─` */
export const ruleLine = (title: string, note: string, width: number, tone: Tone = 'dim'): Line => {
  const end = note === '' ? '' : ` ${note} ─`;
  const start = fitText(title === '' ? '' : `─ ${title} `, Math.max(0, width - textWidth(end)));
  const gap = Math.max(0, width - textWidth(start) - textWidth(end));
  return line(span(start, tone), span('─'.repeat(gap), 'dim'), span(end, 'dim'));
};

/** Rows side by side, with a bar between them. */
export const beside = (left: readonly Line[], right: readonly Line[], leftWidth: number, width: number): Line[] =>
  Array.from({ length: Math.max(left.length, right.length) }, (_none, index) => {
    const one = fitLine(left[index] ?? blank, leftWidth);
    const other = fitLine(right[index] ?? blank, width - leftWidth - 3);
    // Inverting is per line, so in columns the marks alone say what is chosen.
    return line(...one.spans, span(' │ ', 'dim'), ...other.spans);
  });

/** Exactly `height` rows. */
export const fitHeight = (lines: readonly Line[], height: number): readonly Line[] => {
  if (lines.length >= height) return lines.slice(0, height);
  return [...lines, ...Array.from({ length: height - lines.length }, () => blank)];
};

/** First row shown of a list that keeps the chosen one in its middle, as far as the ends allow. */
export const windowStart = (selected: number, count: number, height: number): number =>
  Math.max(0, Math.min(selected - Math.floor(height / 2), count - height));
