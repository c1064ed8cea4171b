import type { Statement } from '../../../db/statement.ts';
import type { Storage } from '../../../db/storage.ts';
import type { UnitOfWork } from '../../../db/unit-of-work.ts';
import type { AgentFlow, WindowLimit } from '../../../engine/compiled-agent.ts';
import { type FlowStore, flowStore, type JobHold, jobStore, type LastEntered } from '../../jobs/index.ts';
import type { DropRun } from './dropped-run.ts';
import { type Drop, debounced, lineId, overRateLimit, replaced, skipped, throttled, windowId } from './flow.rules.ts';
import type { QueuedRun } from './queued-run.ts';

/** What a run of another one's key ends as it takes its place. */
export interface Replaced {
  readonly tenantId: string;
  readonly runId: string;
  readonly isWaiting: boolean;
}

export interface FlowDoors {
  readonly drop: DropRun;
  /** Closes a run that waits, or asks for the end of one that executes. Returns when that is done, or can be no more. */
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

const forgetEveryMs = 600_000;
// A clock that is set back does not open a window a second time.
const forgottenAfterMs = 7_200_000;

/** Leaves the unit with nothing written or counted: the run is not let in, or another one has to go first. */
class NotLetIn extends Error {
  readonly why: Drop | Omit<Replaced, 'tenantId'>;

  constructor(why: NotLetIn['why']) {
    super('The run is not let in.');
    this.why = why;
  }
}

/** Throws while the run of the key that was let in last keeps one out that comes now. */
const refuseBehind = (flow: AgentFlow, { runId, agentName }: QueuedRun, last: LastEntered): void => {
  const { singleton } = flow;
  const isWaiting = last.status === 'Pending';
  // A debounce is over once its run has begun, tried again or not.
  const isThere = singleton === null ? isWaiting && last.attempt === 0 : last.status !== null;
  if (!isThere || last.jobId === runId) return;
  if (singleton?.mode === 'Skip') throw new NotLetIn(skipped(agentName, singleton));
  // Of two that come at once the later one stays, whichever is stored first.
  throw new NotLetIn(last.jobId > runId ? replaced(agentName, flow) : { runId: last.jobId, isWaiting });
};

/** Lets runs into the queue as the flow of their agent has it. */
export const createFlowEntry = ({ storage, write, flows }: FlowEntryDeps) => {
  let forgottenAt = Number.NEGATIVE_INFINITY;

  /** What has ended is of use to nobody; a statement now and then keeps the tables small. */
  const forget = async (now: number): Promise<void> => {
    if (now - forgottenAt < forgetEveryMs) return;
    forgottenAt = now;
    await flows.forget(now - forgottenAfterMs);
  };

  /** Takes the key of a run; what it waits for then. `asked`: runs that were asked to end, and are not waited for. */
  const enterLine = async (
    stores: UnitOfWork,
    flow: AgentFlow,
    run: QueuedRun,
    asked: ReadonlySet<string>,
  ): Promise<JobHold | null> => {
    const { runId, tenantId, agentName, now, payload } = run;
    const { debounce, singleton } = flow;
    const key = (singleton ?? debounce)?.key;
    if (key === undefined) return null;
    const line = stores(flowStore);
    const id = lineId(singleton === null ? 'debounce' : 'singleton', tenantId, agentName, key, payload.request);
    const last = await line.last(id, tenantId, runId, now);
    if (!asked.has(last.jobId)) refuseBehind(flow, run, last);
    const since = asked.has(last.jobId) && last.status === null ? last.since : now;
    await line.enter(id, runId, since);
    return debounce && debounced(agentName, debounce, now, since);
  };

  /** What a run that is let in waits for; null: nothing. Throws NotLetIn. */
  const enter = async (
    stores: UnitOfWork,
    flow: AgentFlow,
    run: QueuedRun,
    asked: ReadonlySet<string>,
  ): Promise<JobHold | null> => {
    const { tenantId, agentName, now, payload } = run;
    const { rateLimit, throttle } = flow;
    const use = (gate: 'rateLimit' | 'throttle', limit: WindowLimit) => ({
      id: windowId(gate, tenantId, agentName, limit, payload.request),
      ...{ tenantId, now, limit: limit.limit, windowMs: limit.windowMs },
    });
    const windows = stores(flowStore);
    if (rateLimit !== null && !(await windows.use(use('rateLimit', rateLimit))))
      throw new NotLetIn(overRateLimit(agentName, rateLimit));
    const hold = await enterLine(stores, flow, run, asked);
    if (throttle === null) return hold;
    return throttled(agentName, throttle, now, await windows.reserve(use('throttle', throttle)));
  };

  /** Stores the run, or that it was dropped: when it may start, or null when it may not. */
  return async (
    flow: AgentFlow,
    run: QueuedRun,
    { rows, place, arrival }: EntryWrites,
    { drop, replace }: FlowDoors,
  ): Promise<number | null> => {
    const { tenantId, agentName, now, payload } = run;
    await forget(now);
    const { key } = flow.rateLimit ?? flow.throttle ?? flow.singleton ?? flow.debounce ?? { key: null };
    const line = lineId('singleton', tenantId, agentName, key, payload.request);
    const asked = new Set<string>();
    // Again while another one had to go first: each round ends one.
    for (;;) {
      try {
        const hold = await storage.transaction(async (stores) => {
          const found = await enter(stores, flow, run, asked);
          // One that waits for its time holds nobody in its session up until then.
          await stores.write([...arrival, ...rows, ...(found === null ? place : [])]);
          if (found !== null) await stores(jobStore).hold(run.runId, found);
          return found;
        }, line);
        return hold?.until ?? now;
      } catch (error) {
        if (!(error instanceof NotLetIn)) throw error;
        const { why } = error;
        if ('failure' in why) {
          const dropped = await drop(run, why);
          await write([...arrival, ...dropped.statements]);
          dropped.stored();
          return null;
        }
        asked.add(why.runId);
        await replace({ tenantId, ...why }, replaced(agentName, flow));
      }
    }
  };
};
