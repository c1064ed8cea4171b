import type { Frame } from '../../contract/operation.ts';
import { isoTime } from '../../core/iso-time.ts';

/**
 * One event before it has a place in the stream: its members as JSON object text.
 * `stored` differs from `members` where recording settings keep text out of the store.
 */
export interface LoggedEvent {
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: number;
  readonly members: string;
  readonly stored: string;
}

const withMembers = (head: string, members: string): string =>
  members === '{}' ? `${head}}` : `${head},${members.slice(1)}`;

const frame = (runId: string, sequence: number, type: string, timestamp: number, members: string): Frame => ({
  id: sequence,
  event: type,
  data: withMembers(
    `{"runId":"${runId}","sequence":${sequence},"type":"${type}","timestamp":"${isoTime(timestamp)}"`,
    members,
  ),
});

export const toFrame = (runId: string, event: LoggedEvent): Frame =>
  frame(runId, event.sequence, event.type, event.timestamp, event.members);

/**
 * A pack of consecutive events as one row: `[[type, epochMs, members], …]`. Run id and sequences are implied by the
 * row's key and the position, which keeps a run of many short deltas small.
 */
export const encodePack = (events: readonly LoggedEvent[]): string => {
  let text = '[';
  for (const event of events) text += `${text === '[' ? '' : ','}["${event.type}",${event.timestamp},${event.stored}]`;
  return `${text}]`;
};

/** The frames of a stored pack, from the event with the sequence `from` on. */
export const decodePack = (runId: string, firstSequence: number, pack: string, from: number): Frame[] => {
  const entries = JSON.parse(pack) as [string, number, Record<string, unknown>][];
  const frames: Frame[] = [];
  entries.forEach(([type, timestamp, members], index) => {
    const sequence = firstSequence + index;
    if (sequence >= from) frames.push(frame(runId, sequence, type, timestamp, JSON.stringify(members)));
  });
  return frames;
};
