import { formatTime } from '../../text/format.ts';
import { wrapText } from '../../text/wrap-text.ts';
import { cursorIndex, type OpenRun } from '../state/open-run.ts';
import type { TimelineItem } from '../state/timeline.ts';
import { fitHeight, type Line, line, listLine, ruleLine, type Span, span, type Tone } from './line.ts';
import { tokensText } from './run-cells.ts';

/** Cells before the text: the mark of the choice, the time, a gap. */
const leadWidth = 12;
const noTime = ' '.repeat(leadWidth - 2);

const tones: Readonly<Record<string, Tone>> = {
  'run.completed': 'good',
  'run.failed': 'bad',
  'run.canceled': 'warn',
  'run.awaiting-approval': 'warn',
  'run.awaiting-input': 'warn',
  'approval.requested': 'warn',
  'client-tool.requested': 'warn',
  'child.timed-out': 'warn',
  'model.fallback-used': 'warn',
  'content.masked': 'warn',
  'content.blocked': 'bad',
  'structured-response.rejected': 'warn',
  'usage.updated': 'dim',
  'tool.failed': 'bad',
  'tool.invoked': 'good',
  error: 'bad',
};

const toneOf = ({ kind, event }: TimelineItem): Tone => {
  if (kind === 'reasoning') return 'dim';
  return kind === 'message' ? 'plain' : (tones[event] ?? 'plain');
};

/** The last rows of a text that is being written; the first ones of a finished one. */
const textRows = ({ text, open }: TimelineItem, width: number, limit: number): readonly string[] => {
  // No more is laid out than could be shown, however long the text is.
  const enough = limit * width * 2;
  if (open) {
    const rows = wrapText(text.length > enough ? `… ${text.slice(-enough)}` : text, width);
    return rows.length > limit ? rows.slice(-limit) : rows;
  }
  const rows = wrapText(text.trimEnd().slice(0, enough), width);
  return rows.length > limit ? [...rows.slice(0, limit - 1), '… Enter shows all of it'] : rows;
};

const itemRows = (item: TimelineItem, width: number, limit: number): readonly (readonly Span[])[] => {
  const tone = toneOf(item);
  if (item.kind === 'event') return [[span(item.text, tone)]];
  if (item.kind === 'tool') {
    const call = item.text === '' ? [] : [[span(item.text, 'accent')]];
    return item.result === '' ? [...call, [span('… running', 'dim')]] : [...call, [span(item.result, tone)]];
  }
  return textRows(item, width, limit).map((row) => [span(row, tone)]);
};

const itemLines = (item: TimelineItem, chosen: boolean, width: number, limit: number): readonly Line[] => {
  const time = item.time === '' ? '' : formatTime(item.time).slice(-8);
  return itemRows(item, width - leadWidth, limit).map((spans, row) =>
    listLine(chosen && row === 0, row === 0 ? span(`${time}  `, 'dim') : noTime, ...spans),
  );
};

/** The rows around the chosen item; the latest ones at the end where it follows. */
const rowsAround = (open: OpenRun, focused: boolean, width: number, height: number): readonly Line[] => {
  const { items } = open.timeline;
  const at = cursorIndex(open);
  const chosen = items[at];
  if (chosen === undefined) return [];
  const limit = Math.max(3, chosen.open ? height - 2 : Math.floor(height / 2));
  const linesAt = (index: number): readonly Line[] => {
    const item = items[index];
    return item === undefined ? [] : itemLines(item, focused && index === at, width, limit);
  };
  const own = linesAt(at);
  const below: Line[] = [];
  for (let index = at + 1; index < items.length && below.length < height; index += 1) below.push(...linesAt(index));
  const above: Line[] = [];
  for (let index = at - 1; index >= 0 && above.length < height; index -= 1) above.unshift(...linesAt(index));
  const all = [...above, ...own, ...below];
  const centred = above.length - Math.floor((height - own.length) / 2);
  return all.slice(Math.max(0, Math.min(centred, all.length - height)));
};

const streamNote = ({ stream, cursor, timeline }: OpenRun): string => {
  switch (stream.status) {
    case 'opening':
      return 'reading';
    case 'live':
      if (timeline.ended) return '';
      return cursor === null ? 'live' : 'live · End follows';
    case 'reconnecting':
      return 'reconnecting';
    case 'ended':
      return timeline.dropped === 0 ? '' : `${tokensText(timeline.dropped)} earlier ones are not kept here`;
    case 'failed':
      return stream.message;
  }
};

const emptyText = ({ stream }: OpenRun): string =>
  stream.status === 'ended' ? 'The events of this run are not kept any more.' : 'Reading the events …';

/** Events of the run on screen, each at its time. */
export const timelineView = (open: OpenRun, width: number, height: number): readonly Line[] => {
  const focused = open.focus === 'events';
  const head = ruleLine('Events', streamNote(open), width, focused ? 'strong' : 'dim');
  const rows = rowsAround(open, focused, width, height - 1);
  return [head, ...fitHeight(rows.length === 0 ? [line(span(`  ${emptyText(open)}`, 'dim'))] : rows, height - 1)];
};
