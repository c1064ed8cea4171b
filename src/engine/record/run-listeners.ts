import type { Frame } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import { endsWithin } from '../../core/time-limit.ts';
import type { ToolRun } from '../tools/index.ts';
import type { EngineLog } from './record-ports.ts';

/** The run that an event belongs to; its own root where it has no parent. */
export type ListenedRun = ToolRun;

/** One event as its readers get it; the other members are those of its type. */
export interface HeardEvent {
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  readonly [member: string]: Json | undefined;
}

/** Gets every event of every run, in order. Throwing switches it off for the rest of that run. */
export interface RunEventListener {
  readonly name: string;
  onEvent(event: HeardEvent, run: ListenedRun): void | Promise<void>;
}

export interface RunListeners {
  /** Committed events of one run, in order. Neither throws nor waits. */
  heard(run: ListenedRun, frames: readonly Frame[]): void;
  /** Settled once what was heard has been told, but after `ms` at the latest. */
  told(ms: number): Promise<void>;
}

/** What one listener still has to be told of one run. */
interface Ear {
  readonly listener: RunEventListener;
  waiting: Frame[];
  waitingBytes: number;
  telling: Promise<void> | null;
  isOff: boolean;
}

interface Heard {
  readonly ears: readonly Ear[];
  isOver: boolean;
}

// As for any reader: who falls this far behind is cut off, and never slows a run.
const maxWaitingBytes = 1024 * 1024;
// Kept to remember who is off; a run that goes on in another process never ends here.
const maxRuns = 10_000;

const ends = new Set(['run.completed', 'run.failed', 'run.canceled', 'run.awaiting-approval', 'run.awaiting-input']);

/** Null: nobody listens, and nothing is done for an event. */
export const createRunListeners = (
  listeners: readonly RunEventListener[],
  log: Pick<EngineLog, 'warn'>,
): RunListeners | null => {
  if (listeners.length === 0) return null;
  const runs = new Map<string, Heard>();

  const heardOf = (runId: string): Heard => {
    const existing = runs.get(runId);
    if (existing !== undefined) return existing;
    if (runs.size >= maxRuns)
      for (const [id, { ears }] of runs)
        if (ears.every(({ telling }) => telling === null)) {
          runs.delete(id);
          break;
        }
    const ears = listeners.map(
      (listener): Ear => ({ listener, waiting: [], waitingBytes: 0, telling: null, isOff: false }),
    );
    const made: Heard = { ears, isOver: false };
    runs.set(runId, made);
    return made;
  };

  const switchOff = (ear: Ear, runId: string, why: Readonly<Record<string, unknown>>): void => {
    ear.isOff = true;
    ear.waiting = [];
    ear.waitingBytes = 0;
    log.warn(
      { runId, listener: ear.listener.name, ...why },
      'A listener to events failed and hears no more of this run',
    );
  };

  /** Who has thrown stays off until the run is over. */
  const forget = (runId: string, { ears, isOver }: Heard): void => {
    if (ears.some(({ telling }) => telling !== null)) return;
    if (isOver || ears.every(({ isOff }) => !isOff)) runs.delete(runId);
  };

  const tell = async (ear: Ear, run: ListenedRun, heard: Heard): Promise<void> => {
    // Host code never runs within the commit that it is told of.
    await null;
    for (let next = ear.waiting.shift(); next !== undefined; next = ear.waiting.shift()) {
      ear.waitingBytes -= next.data.length;
      try {
        // A copy each: one listener must not change what the next one gets.
        await ear.listener.onEvent(JSON.parse(next.data) as HeardEvent, { ...run });
      } catch (error) {
        switchOff(ear, run.runId, { error });
      }
    }
    ear.telling = null;
    forget(run.runId, heard);
  };

  return {
    heard(run, frames) {
      const heard = heardOf(run.runId);
      heard.isOver ||= frames.some(({ event }) => ends.has(event));
      for (const ear of heard.ears) {
        if (ear.isOff) continue;
        for (const frame of frames) {
          ear.waiting.push(frame);
          ear.waitingBytes += frame.data.length;
        }
        if (ear.waitingBytes > maxWaitingBytes) switchOff(ear, run.runId, { waitingBytes: ear.waitingBytes });
        ear.telling ??= tell(ear, run, heard);
      }
      forget(run.runId, heard);
    },
    async told(ms) {
      const open = [...runs.values()].flatMap(({ ears }) => ears.flatMap(({ telling }) => telling ?? []));
      if (!(await endsWithin(ms, Promise.all(open))))
        log.warn({ waitedMs: ms }, 'A listener to events was not done when the service ended');
    },
  };
};
