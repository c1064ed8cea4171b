import type { Frame, FrameSource } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import { decodePack, type RunLog } from '../../engine/record/index.ts';
import { problemCode, type StoredRunError } from '../../engine/run-failure.ts';
import type { FollowedRuns } from './followed-runs.ts';
import type { LogHead, RunStore } from './runs.store.ts';

export interface EventSourceDeps {
  readonly store: Pick<RunStore, 'get' | 'packs'>;
  readonly engine: Pick<LiveRuns, 'active'>;
  /** Runs that do not execute here. */
  readonly followed: FollowedRuns;
}

// Rows read at once: a long log is sent in pieces, so that neither side holds all of it.
const packsPerRead = 64;

const isOver = (status: string | null | undefined): boolean => status !== 'Queued' && status !== 'Running';

const hasEnd = (frames: readonly Frame[]): boolean => frames.some(({ event }) => terminalEvents.has(event));

/** One reader of one run: the stored part first, then the live part, without a gap between them. */
const createEventReader = (
  { store, engine, followed }: EventSourceDeps,
  tenantId: string,
  runId: string,
  from: number,
  emit: (frames: readonly Frame[]) => void,
  end: () => void,
  drained: () => Promise<void> | undefined,
) => {
  let next = from;
  let stopped = false;
  let sawEnd = false;
  let unsubscribe: () => void = () => undefined;
  let unfollow: (() => void) | null = null;
  let head: LogHead | null = null;
  let isDue = false;
  let failure: { readonly error: unknown } | null = null;
  let wakeUp: () => void = () => undefined;

  /** Called once for each change, or once for several: a reader that is at it reads on. */
  const changed = (seen: LogHead | null): void => {
    head = seen ?? head;
    isDue = true;
    wakeUp();
  };
  const failed = (error: unknown): void => {
    failure = { error };
    changed(null);
  };

  /** The stored events below `until`; true when the terminal one was among them. */
  const drainStore = async (until: number): Promise<boolean> => {
    while (!stopped && next < until) {
      const packs = await store.packs(tenantId, runId, next, packsPerRead);
      for (const pack of packs) {
        const frames = decodePack(runId, pack.firstSequence, pack.events, next);
        if (frames.length === 0) continue;
        next = pack.lastSequence + 1;
        emit(frames);
        await drained();
        if (stopped || hasEnd(frames)) return true;
      }
      if (packs.length < packsPerRead) return false;
    }
    return false;
  };

  const sendLive = (frames: readonly Frame[]): void => {
    const fresh = frames.filter((frame) => frame.id === undefined || frame.id >= next);
    const last = fresh.findLast((frame) => frame.id !== undefined);
    if (last?.id !== undefined) next = last.id + 1;
    if (fresh.length > 0) emit(fresh);
    sawEnd = hasEnd(fresh);
  };

  /** Attaches to a run of this process; true when it ended. */
  const follow = async (log: RunLog): Promise<boolean> => {
    while (!stopped && next < log.committedNext) {
      const before = next;
      if (await drainStore(log.committedNext)) return true;
      // What is committed and not stored was lost with the recording; the live part goes on after it.
      if (next === before) next = log.committedNext;
    }
    if (stopped) return true;
    // Nothing was awaited since the comparison above, so there is no gap between the stored and the live part.
    await new Promise<void>((resolve) => {
      wakeUp = resolve;
      unsubscribe = log.subscribe(sendLive, resolve);
    });
    unsubscribe();
    return sawEnd || stopped;
  };

  /** Waits for more of a log that is written elsewhere; true when the run is over. */
  const wait = async (): Promise<boolean> => {
    if (unfollow === null) {
      if (isOver((await store.get(tenantId, runId))?.status)) return true;
      if (!stopped) unfollow = followed.follow(runId, { changed, failed });
    }
    if (head !== null && isOver(head.status)) return true;
    if (!isDue && !stopped)
      await new Promise<void>((resolve) => {
        wakeUp = resolve;
      });
    isDue = false;
    if (failure !== null) throw failure.error;
    return false;
  };

  return {
    async read(): Promise<void> {
      try {
        while (!stopped) {
          const active = engine.active(runId);
          if (active !== undefined && !active.log.ended) {
            if (await follow(active.log)) break;
            continue;
          }
          if (await drainStore(Number.POSITIVE_INFINITY)) break;
          if (!(await wait())) continue;
          // Read once more after the row was seen closed: its terminal event was committed with it.
          await drainStore(Number.POSITIVE_INFINITY);
          break;
        }
      } finally {
        unfollow?.();
        if (!stopped) end();
      }
    },
    stop(): void {
      stopped = true;
      unsubscribe();
      unfollow?.();
      wakeUp();
    },
  };
};

/** What tells a streaming caller of a failure, outside the log: the code that a JSON caller gets. */
const errorFrame = ({ data }: Frame): Frame => {
  const { error } = JSON.parse(data) as { readonly error: StoredRunError };
  const { type, message } = error;
  return { event: 'error', data: JSON.stringify({ code: problemCode(error.class, type), errorType: type, message }) };
};

/** The rest of an answer whose run this process has lost: what the log says of it, with the error that its caller would get. */
export const lostRunSource = (deps: EventSourceDeps, tenantId: string, runId: string, from: number): FrameSource => {
  const source = runEventSource(deps, tenantId, runId, from);
  return {
    subscribe: (onFrames, onEnd, drained) =>
      source.subscribe(
        (frames) =>
          onFrames(frames.flatMap((frame) => (frame.event === 'run.failed' ? [errorFrame(frame), frame] : [frame]))),
        onEnd,
        drained,
      ),
  };
};

/** The log of a run from a sequence on, live or finished, as an answer. */
export const runEventSource = (deps: EventSourceDeps, tenantId: string, runId: string, from: number): FrameSource => ({
  subscribe(onFrames, onEnd, drained = () => undefined) {
    const reader = createEventReader(deps, tenantId, runId, from, onFrames, onEnd, drained);
    // A store that fails ends the stream; the client resumes where it was.
    reader.read().catch(() => undefined);
    return reader.stop;
  },
});
