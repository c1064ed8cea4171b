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

type Emit = (frames: readonly Frame[]) => void;
type Drained = () => Promise<void> | undefined;

/** One reader of one run: the stored part first, then the live part, without a gap between them. */
class EventReader {
  readonly #deps: EventSourceDeps;
  readonly #tenantId: string;
  readonly #runId: string;
  readonly #emit: Emit;
  readonly #end: () => void;
  readonly #drained: Drained;
  #next: number;
  #stopped = false;
  #sawEnd = false;
  #unsubscribe: () => void = () => undefined;
  #timer: Timer | null = null;
  #wakeUp: () => void = () => undefined;

  constructor(
    deps: EventSourceDeps,
    tenantId: string,
    runId: string,
    from: number,
    emit: Emit,
    end: () => void,
    drained: Drained,
  ) {
    this.#deps = deps;
    this.#tenantId = tenantId;
    this.#runId = runId;
    this.#next = from;
    this.#emit = emit;
    this.#end = end;
    this.#drained = drained;
  }

  stop(): void {
    this.#stopped = true;
    this.#unsubscribe();
    this.#timer?.stop();
    this.#wakeUp();
  }

  async read(): Promise<void> {
    try {
      while (!this.#stopped) {
        const active = this.#deps.engine.active(this.#runId);
        if (active !== undefined && !active.log.ended) {
          if (await this.#follow(active.log)) break;
          continue;
        }
        if (await this.#drainStore(Number.POSITIVE_INFINITY)) break;
        const row = await this.#deps.store.get(this.#tenantId, this.#runId);
        const open = row?.status === 'Queued' || row?.status === 'Running';
        // Read once more after the row was seen closed: its terminal event was committed with it.
        if (!open) {
          await this.#drainStore(Number.POSITIVE_INFINITY);
          break;
        }
        await this.#pause();
      }
    } finally {
      if (!this.#stopped) this.#end();
    }
  }

  /** The stored events below `until`; true when the terminal one was among them. */
  async #drainStore(until: number): Promise<boolean> {
    while (!this.#stopped && this.#next < until) {
      const packs = await this.#deps.store.packs(this.#tenantId, this.#runId, this.#next, packsPerRead);
      if (packs.length === 0) return false;
      for (const pack of packs) {
        const frames = decodePack(this.#runId, pack.firstSequence, pack.events, this.#next);
        if (frames.length === 0) continue;
        this.#next = pack.lastSequence + 1;
        this.#emit(frames);
        await this.#drained();
        if (this.#stopped) return true;
        if (frames.some((frame) => terminalEvents.has(frame.event))) return true;
      }
      if (packs.length < packsPerRead) return false;
    }
    return false;
  }

  /** Attaches to a run of this process; true when it ended. */
  async #follow(log: RunLog): Promise<boolean> {
    while (!this.#stopped && this.#next < log.committedNext) {
      const before = this.#next;
      if (await this.#drainStore(log.committedNext)) return true;
      // What is committed and not stored was lost with the recording; the live part goes on after it.
      if (this.#next === before) this.#next = log.committedNext;
    }
    if (this.#stopped) return true;
    // Nothing was awaited since the comparison above, so there is no gap between the stored and the live part.
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
      this.#unsubscribe = log.subscribe((frames) => this.#sendLive(frames), resolve);
    });
    this.#unsubscribe();
    return this.#sawEnd || this.#stopped;
  }

  #sendLive(frames: readonly Frame[]): void {
    const fresh = frames.filter((frame) => frame.id === undefined || frame.id >= this.#next);
    const last = fresh.findLast((frame) => frame.id !== undefined);
    if (last?.id !== undefined) this.#next = last.id + 1;
    if (fresh.length > 0) this.#emit(fresh);
    this.#sawEnd = fresh.some((frame) => terminalEvents.has(frame.event));
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeUp = resolve;
      this.#timer = this.#deps.clock.after(this.#deps.pollIntervalMs, resolve);
    });
  }
}

/** The log of a run from a sequence on, live or finished, as an answer. */
export const runEventSource = (deps: EventSourceDeps, tenantId: string, runId: string, from: number): FrameSource => ({
  subscribe(onFrames, onEnd, drained = () => undefined) {
    const reader = new EventReader(deps, tenantId, runId, from, onFrames, onEnd, drained);
    // A store that fails ends the stream; the client resumes where it was.
    reader.read().catch(() => undefined);
    return () => reader.stop();
  },
});
