import type { UnitOfWork } from '../../db/unit-of-work.ts';
import {
  type Drop,
  debounced,
  type FlowSource,
  jobReason,
  keyLine,
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
} from './flow.rules.ts';
import { type FlowStore, flowStore, type LastEntered } from './flow.store.ts';
import { flowPlaceStore } from './flow-places.store.ts';
import { type JobHold, type JobReason, jobStore } from './jobs.store.ts';
import type { LaneFlows } from './lane-flows.ts';
import type { NewScheduledJob } from './scheduled-jobs.store.ts';

/** What comes of jobs that were put in line, once that is stored. */
export interface EnteredJobs {
  /** When the earliest of those was due that got places; infinite: there is none. */
  readonly dueAt: number;
  /** Canceled: others took their places in line. */
  readonly ended: readonly string[];
  /** At work, and asked to end. */
  readonly asked: readonly string[];
}

export const nothingEntered: EnteredJobs = { dueAt: Number.POSITIVE_INFINITY, ended: [], asked: [] };

type LaneJob = Pick<NewScheduledJob, 'id' | 'tenantId' | 'lane' | 'payload' | 'now' | 'failure'>;

/** What the gates say before the job is stored. */
interface Admission {
  /** Why it ends before it begins; null: it is let in. */
  readonly drop: JobReason | null;
  readonly hold: JobHold | null;
  /** Whose place it takes, and what that one says of it. */
  readonly replaces: { readonly job: LastEntered; readonly why: JobReason } | null;
}

const letIn: Admission = { drop: null, hold: null, replaces: null };
const dropped = (drop: Drop): Admission => ({ ...letIn, drop: jobReason(drop.failure) });

/** Ends the job whose place another one takes: at once where it waits, as soon as it can where it is at work. */
const replace = async (
  stores: UnitOfWork,
  { job: { jobId, status }, why }: NonNullable<Admission['replaces']>,
  now: number,
): Promise<EnteredJobs> => {
  const jobs = stores(jobStore);
  if (status === 'Pending') {
    await jobs.cancelPending(jobId, now, why);
    return { ...nothingEntered, ended: [jobId] };
  }
  await jobs.explain(jobId, why);
  return { ...nothingEntered, asked: (await jobs.requestCancel(jobId, null, now)) ? [jobId] : [] };
};

/**
 * Lets jobs that are no runs into lanes that have a flow, as a part of the unit that stores each of them: runs have an
 * entry of their own, which closes what it drops with its log.
 */
export const createLaneEntry = (lanes: LaneFlows) => {
  const sourceOf = ({ lane, payload, failure }: LaneJob): FlowSource | null =>
    failure === null ? lanes.sourceOf(lane, payload) : null;

  /** Takes the key of a job. Runs of the lane have keys of their own, since what replaces them is another thing. */
  const enterLine = async (line: FlowStore, source: FlowSource, job: LaneJob): Promise<Admission> => {
    const { id: jobId, tenantId, now } = job;
    const { debounce, singleton } = source.flow;
    const key = (singleton ?? debounce)?.key;
    if (key === undefined) return letIn;
    const id = lineId(singleton === null ? 'job-debounce' : 'job-singleton', tenantId, source, key);
    const last = await line.last(id, tenantId, jobId, now);
    // A debounce is over once its job has begun, tried again or not.
    const isThere = singleton === null ? last.status === 'Pending' && last.attempt === 0 : last.status !== null;
    const isOther = isThere && last.jobId !== jobId;
    if (isOther && singleton?.mode === 'Skip') return dropped(skipped(source, singleton));
    const since = isOther ? last.since : now;
    await line.enter(id, jobId, since);
    return {
      drop: null,
      hold: debounce && debounced(source, debounce, now, since),
      replaces: isOther ? { job: last, why: jobReason(replaced(source).failure) } : null,
    };
  };

  return {
    /** Whether jobs are let in one by one, each in a unit of its own. */
    isGuarded: (job: LaneJob): boolean => sourceOf(job) !== null,
    /** Units that would wait for each other; undefined: nothing is to be waited for. */
    lineOf(job: LaneJob): string | undefined {
      const source = sourceOf(job);
      return source === null ? undefined : workLine(job.tenantId, [source]);
    },
    /** What a job is let in by; all it takes is taken. */
    async admit(stores: UnitOfWork, job: LaneJob): Promise<Admission> {
      const source = sourceOf(job);
      if (source === null) return letIn;
      const { rateLimit, throttle } = source.flow;
      const line = stores(flowStore);
      if (rateLimit !== null && !(await line.use(windowUse('rateLimit', job, source, rateLimit))))
        return dropped(overRateLimit(source, rateLimit));
      const entered = await enterLine(line, source, job);
      if (entered.drop !== null || throttle === null) return entered;
      const from = await line.reserve(windowUse('throttle', job, source, throttle));
      return { ...entered, hold: latestOf([entered.hold, throttled(source, throttle, job.now, from)]) };
    },
    /** Where the job that was just stored stands, what it waits for, and the end of the one whose place it takes. */
    async place(stores: UnitOfWork, job: LaneJob, { hold, replaces }: Admission): Promise<EnteredJobs> {
      const source = sourceOf(job);
      if (source === null) return nothingEntered;
      const { id, tenantId, now } = job;
      const [rank, line] = [rankOf([source]), keyLine(tenantId, [source])];
      if (rank !== 0 || line !== '') await stores(jobStore).standIn(id, rank, line);
      const limit = placeLimit(tenantId, source);
      let { dueAt } = nothingEntered;
      if (limit !== null)
        ({ dueAt } = await stores(flowPlaceStore).enter({ jobId: id, tenantId, limits: [limit], rank, hold, now }));
      else if (hold !== null) await stores(jobStore).hold(id, hold);
      // Last: who gives places away has the key first, and the jobs that wait for them after it.
      return { ...(replaces === null ? nothingEntered : await replace(stores, replaces, now)), dueAt };
    },
  };
};

export type LaneEntry = ReturnType<typeof createLaneEntry>;
