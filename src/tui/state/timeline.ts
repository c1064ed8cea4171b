import type { Frame } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { RunCost, RunUsage } from '../../features/runs/runs.schema.ts';
import { type EventData, eventLine, frameData } from '../../text/event-line.ts';
import { createStyle } from '../../text/style.ts';
import { safeLine, safeText } from '../../text/text-width.ts';

/** One entry of the timeline: an event, a message from its first word to its last, or a tool call with its result. */
export interface TimelineItem {
  readonly key: string;
  readonly kind: 'event' | 'message' | 'reasoning' | 'tool';
  /** Name of the last event that belongs to it. */
  readonly event: string;
  /** ISO 8601 time of the first event. */
  readonly time: string;
  /** What it says: a line of an event, or the text of a message. Safe for a terminal. */
  readonly text: string;
  /** The line of a tool call's result. */
  readonly result: string;
  /** True while more of it may come. */
  readonly open: boolean;
  /** Members of its events, later ones over earlier ones. */
  readonly data: EventData;
}

export interface Timeline {
  readonly items: readonly TimelineItem[];
  /** Items at the start that are not kept any more. */
  readonly dropped: number;
  readonly usage: RunUsage | null;
  readonly cost: RunCost | null;
  readonly ended: boolean;
}

// An hour of a busy run; the log itself keeps everything.
const maxItems = 2_000;
/** A message is kept to this many characters, its latest ones; `acp runs tail` prints all of it. */
const maxText = 100_000;

export const emptyTimeline: Timeline = { items: [], dropped: 0, usage: null, cost: null, ended: false };

const plain = createStyle(false);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const lastOf = (value: string): string => (value.length > maxText ? value.slice(-maxText) : value);

const toolEnds = new Set(['tool.invoked', 'tool.failed']);
const deltas = new Set(['message.delta', 'reasoning.delta']);

const keyOf = ({ event, id }: Frame, data: EventData): string => {
  if (event === 'reasoning.delta') return `reasoning ${text(data['messageId'])}`;
  if (event.startsWith('message.')) return `message ${text(data['messageId'])}`;
  if (event === 'tool.invoking' || toolEnds.has(event)) return `tool ${text(data['toolCallId'])}`;
  return `event ${id ?? ''}`;
};

const opened = (frame: Frame, data: EventData, key: string): TimelineItem | null => {
  const { event } = frame;
  const shared = { key, event, time: text(data['timestamp']), result: '', data };
  if (deltas.has(event)) {
    const kind = event === 'message.delta' ? 'message' : 'reasoning';
    return { ...shared, kind, text: safeText(text(data['text'])), open: true };
  }
  if (event === 'message.completed') {
    // A turn that only calls tools has a message without text.
    if (text(data['text']) === '') return null;
    return { ...shared, kind: 'message', text: lastOf(safeText(text(data['text']))), open: false };
  }
  const said = eventLine(event, data, plain);
  if (said === null) return null;
  if (event === 'tool.invoking') return { ...shared, kind: 'tool', text: safeLine(said), open: true };
  // A call that was refused before it began has only its end.
  if (toolEnds.has(event)) return { ...shared, kind: 'tool', text: '', result: safeLine(said), open: false };
  return { ...shared, kind: 'event', text: safeLine(said), open: false };
};

/** The result without the tool's name, which stands in the line above. */
const resultLine = (frame: Frame, data: EventData): string =>
  safeLine(eventLine(frame.event, { ...data, toolName: '' }, plain) ?? '');

const continued = (item: TimelineItem, frame: Frame, data: EventData): TimelineItem => {
  const { event } = frame;
  const merged = { ...item, event, data: { ...item.data, ...data } };
  if (deltas.has(event)) return { ...merged, data: item.data, text: lastOf(item.text + safeText(text(data['text']))) };
  if (event === 'message.completed')
    return { ...merged, text: lastOf(safeText(text(data['text']) || item.text)), open: false };
  return { ...merged, result: resultLine(frame, data), open: false };
};

/** Adds events in the order of their log. */
export const addFrames = (timeline: Timeline, frames: readonly Frame[]): Timeline => {
  const items = [...timeline.items];
  let { usage, cost, ended } = timeline;
  for (const frame of frames) {
    const data = frameData(frame);
    if (frame.event === 'usage.updated' || terminalEvents.has(frame.event)) {
      usage = (data['usage'] as RunUsage | null | undefined) ?? usage;
      cost = (data['cost'] as RunCost | null | undefined) ?? cost;
    }
    if (terminalEvents.has(frame.event)) ended = true;
    const key = keyOf(frame, data);
    // Plain events go with no other one, and most are plain.
    const at = key.startsWith('event ') ? -1 : items.findLastIndex((item) => item.key === key && item.open);
    const begun = items[at];
    if (begun !== undefined) items[at] = continued(begun, frame, data);
    else {
      const item = opened(frame, data, key);
      if (item !== null) items.push(item);
    }
    // Thinking is over when anything else comes.
    const last = items.at(-2);
    if (last?.kind === 'reasoning' && last.open) items[items.length - 2] = { ...last, open: false };
  }
  const excess = Math.max(0, items.length - maxItems);
  return { items: items.slice(excess), dropped: timeline.dropped + excess, usage, cost, ended };
};
