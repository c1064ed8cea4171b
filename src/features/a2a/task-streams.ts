import type { Frame, FrameSource, StreamReply } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { RunRow } from '../../db/tables.ts';
import type { Artifact, StreamResponse, Task } from './a2a.schema.ts';
import { resumeExtension } from './a2a-versions.ts';
import { isAfter, type PlacedUpdate, type TaskUpdates } from './task-updates.ts';

export interface TaskStreamDeps {
  /** The log of a run from a sequence on, wherever it executes. */
  readonly events: (tenantId: string, runId: string, from: number) => FrameSource;
  readonly files: (row: RunRow, base: string) => Promise<readonly Artifact[]>;
  /** Streams that are open, by one more or less. */
  readonly counted: (by: 1 | -1) => void;
}

export interface TaskStreamOf {
  readonly row: RunRow;
  /** What the stream begins with, and the updates that follow it. */
  readonly task: Task;
  readonly updates: TaskUpdates;
  readonly base: string;
  /** Null: updates are told without their positions. Else updates up to `seen` are left out. */
  readonly positions: { readonly seen: string | null } | null;
  /** An event as the text of the caller's protocol. */
  readonly text: (event: StreamResponse) => string;
}

export const positionMember = `${resumeExtension}/position`;

/** The position stands where the protocol has a place for what is an extension's. */
const placed = ({ event, position }: PlacedUpdate): StreamResponse =>
  'statusUpdate' in event
    ? {
        statusUpdate: {
          ...event.statusUpdate,
          metadata: { ...event.statusUpdate.metadata, [positionMember]: position },
        },
      }
    : {
        artifactUpdate: {
          ...event.artifactUpdate,
          metadata: { ...event.artifactUpdate.metadata, [positionMember]: position },
        },
      };

/** Updates of tasks on their way to callers, all of which a drain ends at once: another process goes on with them. */
export const createTaskStreams = ({ events, files, counted }: TaskStreamDeps) => {
  const open = new Set<() => void>();
  let isDraining = false;

  const subscribe = (
    { row, task, updates, base, positions, text }: TaskStreamOf,
    onFrames: (frames: readonly Frame[]) => void,
    onEnd: () => void,
    drained?: () => Promise<void> | undefined,
  ): (() => void) => {
    let isOver = false;
    let ending: Promise<void> | null = null;
    const send = (sent: readonly StreamResponse[]): void => {
      if (!isOver && sent.length > 0) onFrames(sent.map((event) => ({ event: 'message', data: text(event) })));
    };
    const told = (placedUpdates: readonly PlacedUpdate[]): readonly StreamResponse[] => {
      const seen = positions?.seen ?? null;
      const wanted = seen === null ? placedUpdates : placedUpdates.filter(({ position }) => isAfter(position, seen));
      return wanted.map((update) => (positions === null ? update.event : placed(update)));
    };
    const leave = (): boolean => {
      if (isOver) return false;
      isOver = true;
      open.delete(end);
      counted(-1);
      return true;
    };
    let stop: () => void = () => undefined;
    const end = (): void => {
      if (!leave()) return;
      stop();
      onEnd();
    };
    open.add(end);
    counted(1);
    const at = positions?.seen ?? `${updates.next - 1}`;
    send([{ task: positions === null ? task : { ...task, metadata: { ...task.metadata, [positionMember]: at } } }]);
    const finish = async (last: Frame): Promise<void> => {
      send(told(updates.read(last, await files(row, base))));
    };
    if (isDraining) {
      end();
      return () => undefined;
    }
    stop = events(row.tenant_id, row.id, updates.next).subscribe(
      (frames) => {
        const sent: StreamResponse[] = [];
        // What the run has made is read first: the last status is the last of all.
        for (const frame of frames)
          if (terminalEvents.has(frame.event)) ending = finish(frame);
          else sent.push(...told(updates.read(frame)));
        send(sent);
      },
      () => {
        // Without its last status, where that cannot be told: the caller subscribes again.
        if (ending === null) end();
        else void ending.catch(() => undefined).then(end);
      },
      drained,
    );
    // It may have ended while it was being subscribed to.
    if (isOver) stop();
    return () => {
      if (leave()) stop();
    };
  };

  return {
    reply: (of: TaskStreamOf, headers: Readonly<Record<string, string>>): StreamReply => ({
      status: 200,
      framing: 'data',
      stream: { subscribe: (onFrames, onEnd, drained) => subscribe(of, onFrames, onEnd, drained) },
      headers,
    }),
    async draining(): Promise<void> {
      isDraining = true;
      for (const end of [...open]) end();
    },
  };
};

export type TaskStreams = ReturnType<typeof createTaskStreams>;
