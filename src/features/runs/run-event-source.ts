import type { Frame, FrameSource } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import type { RunEngine } from '../../engine/lifecycle/index.ts';
import { decodePack, type RunLog } from '../../engine/record/index.ts';
import type { RunStore } from './runs.store.ts';

interface EventSourceDeps {
  readonly store: RunStore;
  readonly engine: RunEngine;
  /** How often the store is asked for a run that does not execute here. */
  readonly pollIntervalMs: number;
  readonly clock: Pick<Clock, 'after'>;
}

// Rows read at once: a long log is sent in pieces, so that neither side holds all of it.
const packsPerRead = 64;

const hasEnd = (frames: readonly Frame[]): boolean => frames.some(({ event }) => terminalEvents.has(event));

/** One reader of one run: the stored part first, then the live part, without a gap between them. */
const createEventReader = (
  { store, engine, clock, pollIntervalMs }: EventSourceDeps,
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
  let timer: Timer | null = null;
  let wakeUp: () => void = () => undefined;

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
          const row = await store.get(tenantId, runId);
          // Read once more after the row was seen closed: its terminal event was committed with it.
          if (row?.status !== 'Queued' && row?.status !== 'Running') {
            await drainStore(Number.POSITIVE_INFINITY);
            break;
          }
          await new Promise<void>((resolve) => {
            wakeUp = resolve;
            timer = clock.after(pollIntervalMs, resolve);
          });
        }
      } finally {
        if (!stopped) end();
      }
    },
    stop(): void {
      stopped = true;
      unsubscribe();
      timer?.stop();
      wakeUp();
    },
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
