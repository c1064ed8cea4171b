import type { Statement } from '../../../db/statement.ts';
import type { Storage } from '../../../db/storage.ts';
import type { UnitOfWork } from '../../../db/unit-of-work.ts';
import {
  type Drop,
  debounced,
  type FlowSource,
  type FlowStore,
  flowPlaceStore,
  flowStore,
  forgetting,
  type JobHold,
  jobStore,
  keyLine,
  type LastEntered,
  latestOf,
  lineId,
  overRateLimit,
  placeLimit,
  rankOf,
  replaced,
  skipped,
  throttled,
  windowUse,
  workLine,
} from '../../jobs/index.ts';
import type { DropRun } from './dropped-run.ts';
import type { QueuedRun } from './queued-run.ts';

/** What a run of another one's key ends as it takes its place. */
export interface Replaced {
  readonly tenantId: string;
  readonly runId: string;
  /** True: it is stopped where it executes; false: one that has begun goes on. */
  readonly stops: boolean;
}

export interface FlowDoors {
  readonly drop: DropRun;
  /** Closes a run that waits, or asks for the end of one that executes. */
  readonly replace: (run: Replaced, why: Drop) => Promise<void>;
}

interface FlowEntryDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly write: (statements: readonly Statement[]) => Promise<void>;
  readonly flows: Pick<FlowStore, 'forget'>;
}

/** The writes that store a run: where it waits, its place in its session is left to its start. */
export interface EntryWrites {
  readonly rows: readonly Statement[];
  readonly place: readonly Statement[];
  /** What comes with it, dropped or not. */
  readonly arrival: readonly Statement[];
}

/** Leaves the unit with nothing written or counted: the run is not let in, or another one has to go first. */
class NotLetIn extends Error {
  readonly why: Drop | { readonly run: Omit<Replaced, 'tenantId'>; readonly drop: Drop };

  constructor(why: NotLetIn['why']) {
    super('The run is not let in.');
    this.why = why;
  }
}

/** Throws while the run of the key that was let in last keeps one out that comes now. */
const refuseBehind = (source: FlowSource, { runId }: QueuedRun, last: LastEntered): void => {
  const { singleton } = source.flow;
  // A debounce is over once its run has begun, tried again or not.
  const isThere = singleton === null ? last.status === 'Pending' && last.attempt === 0 : last.status !== null;
  if (!isThere || last.jobId === runId) return;
  if (singleton?.mode === 'Skip') throw new NotLetIn(skipped(source, singleton));
  // Of two that come at once the later one stays, whichever is stored first.
  const drop = replaced(source);
  throw new NotLetIn(last.jobId > runId ? drop : { run: { runId: last.jobId, stops: singleton !== null }, drop });
};

/** Lets runs into the queue as the flow of their agent has it. */
export const createFlowEntry = ({ storage, write, flows }: FlowEntryDeps) => {
  const forget = forgetting(flows);

  /** Takes the key of a run; what it waits for then. `asked`: runs that were asked to end, and are not waited for. */
  const enterLine = async (
    line: FlowStore,
    source: FlowSource,
    run: QueuedRun,
    asked: ReadonlySet<string>,
  ): Promise<JobHold | null> => {
    const { runId, tenantId, now } = run;
    const { debounce, singleton } = source.flow;
    const key = (singleton ?? debounce)?.key;
    if (key === undefined) return null;
    const id = lineId(singleton === null ? 'debounce' : 'singleton', tenantId, source, key);
    const last = await line.last(id, tenantId, runId, now);
    if (!asked.has(last.jobId)) refuseBehind(source, run, last);
    const since = asked.has(last.jobId) && last.status === null ? last.since : now;
    await line.enter(id, runId, since);
    return debounce && debounced(source, debounce, now, since);
  };

  /**
   * What a run that is let in waits for; null: nothing. Throws NotLetIn. Rows are locked gate by gate and in the order of
   * the sources, so that no two wait for each other.
   */
  const enter = async (
    line: FlowStore,
    sources: readonly FlowSource[],
    run: QueuedRun,
    asked: ReadonlySet<string>,
  ): Promise<JobHold | null> => {
    const holds: (JobHold | null)[] = [];
    for (const source of sources) {
      const { rateLimit } = source.flow;
      if (rateLimit !== null && !(await line.use(windowUse('rateLimit', run, source, rateLimit))))
        throw new NotLetIn(overRateLimit(source, rateLimit));
    }
    for (const source of sources) holds.push(await enterLine(line, source, run, asked));
    for (const source of sources) {
      const { throttle } = source.flow;
      if (throttle !== null)
        holds.push(
          throttled(source, throttle, run.now, await line.reserve(windowUse('throttle', run, source, throttle))),
        );
    }
    return latestOf(holds);
  };

  /** Stores a run that is let in; from when on somebody has to look for it, or for others that have got their places. */
  const store = async (
    stores: UnitOfWork,
    sources: readonly FlowSource[],
    { runId, tenantId, now }: QueuedRun,
    { rows, place, arrival }: EntryWrites,
    hold: JobHold | null,
  ): Promise<number> => {
    const rank = rankOf(sources);
    const line = keyLine(tenantId, sources);
    const limits = sources.map((source) => placeLimit(tenantId, source)).filter((limit) => limit !== null);
    if (limits.length === 0) {
      // One that waits for its time holds nobody in its session up until then.
      await stores.write([...arrival, ...rows, ...(hold === null ? place : [])]);
      if (hold !== null) await stores(jobStore).hold(runId, hold);
      if (rank !== 0 || line !== '') await stores(jobStore).standIn(runId, rank, line);
      return hold?.until ?? now;
    }
    await stores.write([...arrival, ...rows]);
    await stores(jobStore).standIn(runId, rank, line);
    const { jobIds, dueAt } = await stores(flowPlaceStore).enter({
      jobId: runId,
      tenantId,
      limits,
      hold,
      rank,
      now,
    });
    // Nor does one that waits for its place.
    if (jobIds.includes(runId)) await stores.write(place);
    return dueAt;
  };

  /** Stores the run, or that it was dropped: from when on somebody has to look for jobs, or null. */
  return async (
    sources: readonly FlowSource[],
    run: QueuedRun,
    writes: EntryWrites,
    { drop, replace }: FlowDoors,
  ): Promise<number | null> => {
    const { tenantId } = run;
    await forget(run.now);
    const line = workLine(tenantId, sources);
    const asked = new Set<string>();
    // Again while another one had to go first: each round ends one.
    for (;;) {
      try {
        return await storage.transaction(
          async (stores) => store(stores, sources, run, writes, await enter(stores(flowStore), sources, run, asked)),
          line,
        );
      } catch (error) {
        if (!(error instanceof NotLetIn)) throw error;
        const { why } = error;
        if ('failure' in why) {
          const dropped = await drop(run, why);
          await write([...writes.arrival, ...dropped.statements]);
          dropped.stored();
          return null;
        }
        asked.add(why.run.runId);
        await replace({ tenantId, ...why.run }, why.drop);
      }
    }
  };
};
